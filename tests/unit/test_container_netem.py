"""A kernel without netem is named as such; every other refusal stays what it is."""

from __future__ import annotations

import errno

import pytest
from pyroute2.netlink.exceptions import NetlinkError

from testbed.errors import HostError, LabError
from testbed.lab.container.netem import explained

pytestmark = pytest.mark.unit


def refused(subject: str, code: int) -> LabError:
    error = LabError("add qdisc", subject, "refused")
    error.__cause__ = NetlinkError(code)
    return error


def test_no_qdisc_of_that_kind() -> None:
    found = explained(refused("netem on interface 3, parent 0xffffffff", errno.ENOENT))
    assert isinstance(found, HostError)
    assert "modprobe sch_netem" in found.remedy


@pytest.mark.parametrize(
    ("subject", "code"), [("netem on interface 3", errno.EINVAL), ("fq on 3", errno.ENOENT)]
)
def test_anything_else(subject: str, code: int) -> None:
    error = refused(subject, code)
    assert explained(error) is error


def test_an_error_without_a_kernels_answer() -> None:
    error = LabError("find a device", "netem", "none")
    assert explained(error) is error
