"""Files and folders by URL."""
