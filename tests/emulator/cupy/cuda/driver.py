"""As `cupy.cuda.driver`: its error."""

_ERRORS = {1: "CUDA_ERROR_INVALID_VALUE: invalid argument", 500: "CUDA_ERROR_NOT_FOUND: named symbol not found"}


class CUDADriverError(RuntimeError):
    """The driver refuses; `status` is its number."""

    def __init__(self, status: int):
        super().__init__(_ERRORS.get(status, f"error {status}"))
        self.status = status
