"""Check that a Dask scheduler answers at the address, so that a wrong address gives a clear error."""

from __future__ import annotations

import asyncio
import ssl
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from longwall.pipeline.config import SchedulerSection
from longwall.storage.errors import InputError
from longwall.storage.ingest.text.input_file import open_input


def security_of(section: SchedulerSection) -> Any:
    """Return the certificates of a config as Dask takes them, a ``distributed.Security``.

    Parameters
    ----------
    section
        Of the config; without certificates, those of Dask's own configuration.

    Raises
    ------
    InputError
        If a file is not there, or holds no certificate or key.
    """
    from distributed.security import Security

    if section.security is None:
        return Security()
    files = {"ca": section.security.ca, "cert": section.security.cert, "key": section.security.key}
    for name, path in files.items():
        _check_file(name, path)
    security = Security(
        tls_ca_file=str(files["ca"]),
        tls_client_cert=str(files["cert"]),
        tls_client_key=str(files["key"]),
        require_encryption=True,
    )
    try:
        security.get_connection_args("client")
    except (OSError, ValueError) as error:  # OpenSSL does not say which of them
        raise InputError(
            "scheduler.security: ca, cert and key must be PEM files, and key the one of cert; OpenSSL says: "
            f"{_text(error)}"
        ) from None
    return security


def check_scheduler(address: str, security: Any, seconds: float) -> None:
    """Check that a scheduler with this process's version of Dask answers at an address.

    Parameters
    ----------
    address
        Such as ``"tcp://10.0.0.1:8786"``.
    security
        A ``distributed.Security``.
    seconds
        How long to wait for it.

    Raises
    ------
    InputError
        If nothing answers, or something else.
    """
    own = version("distributed")
    key = f'scheduler.address = "{address}"'
    try:
        with ThreadPoolExecutor(1) as own_loop:  # this thread may be in one
            about = own_loop.submit(
                asyncio.run, asyncio.wait_for(_ask(address, security, seconds), 2 * seconds)
            ).result()
    except _Untrusted as error:
        raise InputError(f"{key}: the certificates here and there do not trust each other: {error}") from None
    except TypeError:
        raise InputError(f"{key}: certificates are needed: give scheduler.security ca, cert and key") from None
    except _Silent as error:
        reason = f" ({error})" if str(error) else ""
        raise InputError(
            f"{key}: nothing answers{reason}: start the scheduler, or see that it can be reached from here"
        ) from None
    except Exception as error:  # whatever Dask makes of bytes that are not its own
        raise InputError(
            f"{key}: what answers there is no Dask scheduler of this version, or it wants other certificates, or "
            f"another kind of address (tls:// is with certificates, tcp:// without): {_text(error)}"
        ) from None
    if about["type"] != "Scheduler":
        raise InputError(f"{key}: this is a {about['type'].lower()}: give the address of the scheduler")
    if about["version"] != own:
        raise InputError(
            f"{key}: the scheduler has distributed {about['version']}, this process {own}: "
            "install the same version everywhere"
        )


_NOT_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")  # what OpenSSL says of other protocols


class _Silent(Exception):
    """Nothing answers."""


class _Untrusted(Exception):
    """A certificate is refused, by one side or the other."""


async def _ask(address: str, security: Any, seconds: float) -> dict[str, str]:
    """Return the type and the version of the server at an address."""
    from distributed.comm.core import connect

    arguments = security.get_connection_args("client")
    try:
        comm = await connect(address, timeout=seconds, handshake_overrides=None, **arguments)
    except OSError as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        if isinstance(cause, ssl.SSLError) and cause.reason not in _NOT_TLS:
            raise _Untrusted(_text(cause)) from error
        if not await _listens(address):
            raise _Silent(str(cause).strip()) from error  # Dask's own cancellations say nothing
        raise
    try:
        return {"type": (await _call(comm, "identity"))["type"], "version": await _version(comm)}
    finally:
        await comm.close()


async def _listens(address: str) -> bool:
    """Return whether anything listens there."""
    from distributed.comm.addressing import get_address_host_port

    try:
        _, writer = await asyncio.open_connection(*get_address_host_port(address))
    except OSError:
        return False
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return True


async def _version(comm: Any) -> str:
    return str((await _call(comm, "versions"))["packages"]["distributed"])


async def _call(comm: Any, operation: str) -> Any:
    await comm.write({"op": operation, "reply": True})
    return await comm.read()


def _check_file(name: str, path: Path) -> None:
    try:
        open_input(path).close()
    except InputError as error:
        raise InputError(f"scheduler.security.{name}: {error}") from None


def _text(error: BaseException) -> str:
    return str(error).strip() or type(error).__name__
