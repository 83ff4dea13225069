"""Count all matches of a query as signed sums of counts whose parts are found once for every image of a separator."""
