"""A Mininet node that is cheap to make: the namespace now, the shell when it is asked for.

Mininet starts ``mnexec``, ``env`` and an interactive ``bash`` per node, which costs
0.2 s of processor time each in the guest. Agents are forked into namespaces and
need no shell, so ours is started by the first ``cmd``, attached with ``mnexec -a``.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import warnings

from testbed.errors import LabError

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # Mininet imports distutils
    from mininet.link import Intf
    from mininet.node import Node as MininetNode

_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def hold_namespace() -> int:
    """Forks a process that sits in a new network namespace until it is killed; its pid.

    It dies with us whatever happens, and the namespace with it.
    """
    reader, writer = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            made = _libc.unshare(_CLONE_NEWNET) == 0 and os.getppid() == parent
            os.write(writer, b"y" if made else b"n")
            os.closerange(0, 1024)
            while made:
                signal.pause()
        finally:
            os._exit(1)
    os.close(writer)
    answer = os.read(reader, 1)
    os.close(reader)
    if answer != b"y":
        os.waitpid(pid, 0)
        raise LabError(
            "make a network namespace", "unshare", "the kernel refuses", "testbed doctor"
        )
    return pid


class LabInterface(Intf):  # type: ignore[misc]  # Mininet has no types
    """An interface that netlink made and configures; Mininet only knows its name."""

    def config(self, *_: object, **__: object) -> dict[str, object]:
        """Leaves the device alone; Mininet would run ifconfig in a shell."""
        return {}


class LabNode(MininetNode):  # type: ignore[misc]  # Mininet has no types
    """See the module. ``pid`` is the process that holds the namespace."""

    holder: int = 0
    inNamespace: bool  # noqa: N815  # Mininet's name

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: N802  # Mininet's name
        """Makes the namespace only."""
        self.holder = hold_namespace()
        self.pid = self.holder
        self.execed = False
        self.lastCmd = self.lastPid = None
        self.readbuf = ""

    def cmd(self, *words: str, **options: object) -> str:
        """Runs a shell command in the node and returns its output; starts the shell first."""
        if self.shell is None:
            self._attach_shell()
        output: str = super().cmd(*words, **options)
        return output

    def _attach_shell(self) -> None:
        holder = self.holder
        in_namespace, self.inNamespace = self.inNamespace, False
        try:
            super().startShell(mnopts=f"-cda {holder}")
        finally:
            self.inNamespace = in_namespace
            self.pid = holder

    def terminate(self) -> None:
        """Ends the shell, if there is one, and the namespace."""
        super().terminate()
        if self.holder:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.holder, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.holder, 0)
            self.holder = 0
