"""The ways in which Longwall ends badly; all carry one sentence for the user, never a traceback."""


class InputError(Exception):
    """The user's input (config, file, argument) is wrong: exit code 2.

    The message says what is wrong, where (file, line, key) and what to do.
    """


class RunError(Exception):
    """A valid run could not finish (memory, disk, device): exit code 1."""


class FinalError(RunError):
    """A run could not finish, and going on with it would not help."""
