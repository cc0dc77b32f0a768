"""The plan of a fake run: one client, one prefill, one decode agent, two legs."""

from __future__ import annotations

from testbed.contract.agent import (
    AgentConfig,
    Hardware,
    ModelConfig,
    Peer,
    Request,
    Shape,
    Tcp,
    Window,
)
from testbed.contract.link import LinkSpec
from testbed.contract.network import End, Interface, Link, Network, Node
from testbed.contract.plan import Estimate, Guest, Offered, Plan
from testbed.contract.pool import Pool
from testbed.contract.role import NodeKind, Role
from tests.fakes.fake_run import BLOCK, INPUT_TOKENS, LEG_PAYLOAD_BPS, RTT_NS, SECOND, FakeRun


def make_plan(run: FakeRun, requests: tuple[Request, ...]) -> Plan:
    """Build the plan that the fake run pretends to have followed."""
    window = Window(
        warm_up_ns=int(run.warm_up_s * SECOND),
        measure_ns=int(run.measure_s * SECOND),
        drain_ns=int(run.drain_s * SECOND),
    )
    payload = sum(r.wire_bytes for r in requests if r.at_ns >= window.begin_ns)
    peers = tuple(
        Peer(name=name, role=role, address=address, control_port=5000, data_port=6000)
        for name, role, address in _AGENTS
    )
    agents = tuple(
        AgentConfig(
            node=peer.name,
            role=peer.role,
            seed=run.seed,
            barrier_ns=1_800_000_060 * SECOND,
            window=window,
            address=peer.address,
            control_port=peer.control_port,
            data_port=peer.data_port,
            peers=tuple(other for other in peers if other is not peer),
            model=ModelConfig.model_validate({"name": run.model, "seed": run.seed}),
            shape=Shape(block_tokens=BLOCK, ratio=128, bytes_per_token=5031, fixed_bytes=4_560_000),
            hardware=Hardware(
                name="fake",
                source="test",
                prefill_base_s=0.001,
                prefill_token_s=0,
                prefill_attention_s=0,
                decode_base_s=0.02,
                decode_sequence_s=0,
                decode_context_s=0,
            ),
            pool=Pool(
                size=run.pool,
                queue=4096,
                acquire_timeout_ns=120 * SECOND,
                transfer_timeout_ns=120 * SECOND,
                chunk_bytes=2 << 20,
                source_port=20_000,
            ),
            tcp=Tcp(send_buffer=32 << 20, receive_buffer=32 << 20, receive_low_water=256 << 10),
            prompt_tokens=INPUT_TOKENS,
            events=f"/mnt/run/events/{peer.name}.jsonl",
        )
        for peer in peers
    )
    return Plan(
        scenario=run.scenario,
        seed=run.seed,
        lab="mininet",
        clock="virtual",
        host="guest",
        guest=Guest(
            memory_bytes=1 << 30,
            entropy_seed=run.seed,
            start_ns=1_800_000_000 * SECOND,
            barrier_ns=1_800_000_060 * SECOND,
        ),
        network=_network(),
        agents=agents,
        offered=Offered(
            payload_bytes=payload,
            legs=2,
            leg_payload_bps=LEG_PAYLOAD_BPS,
            load=payload * 8 / run.measure_s / (2 * LEG_PAYLOAD_BPS),
            byte_scale=1.0,
            raw_load=run.load,
        ),
        estimate=Estimate(
            wall_s=60,
            guest_memory_bytes=1 << 30,
            host_memory_bytes=1 << 30,
            disk_bytes=1 << 28,
            payload_bytes=payload,
            virtual_s=run.warm_up_s + run.measure_s + run.drain_s,
        ),
        model=run.model,
        summary=(("topology", "two-dc, 2 legs of 10 Gbit/s, RTT 20 ms"), ("pool", str(run.pool))),
    )


_AGENTS = (
    ("c1", Role.CLIENT, "10.0.0.1"),
    ("p1", Role.PREFILL, "10.0.1.1"),
    ("md1", Role.DECODE, "10.1.1.1"),
)


def _network() -> Network:
    wan = LinkSpec(rate_bps=10_000_000_000, delay_ns=RTT_NS // 2, buffer_bytes=32 << 20)
    near = LinkSpec(rate_bps=400_000_000_000, delay_ns=1_000, buffer_bytes=32 << 20)
    return Network(
        nodes=tuple(
            Node(
                name=name,
                kind=NodeKind.AGENT,
                site="b" if role is Role.DECODE else "a",
                role=role,
                interfaces=(
                    Interface(name="eth0", mac="02:00:00:00:00:01", address=f"{address}/31"),
                ),
            )
            for name, role, address in _AGENTS
        ),
        links=(
            *(_link(f"wan{leg}", "wan", "tor-a", "tor-b", wan) for leg in (1, 2)),
            *(
                _link(f"fab-{name}", "fabric", name, f"tor-{site}", near)
                for name, site in (("c1", "a"), ("p1", "a"), ("md1", "b"))
            ),
        ),
        routes=(),
        neighbours=(),
    )


def _link(name: str, kind: str, a: str, b: str, spec: LinkSpec) -> Link:
    return Link(
        name=name,
        kind=kind,
        wire=name,
        a=End(node=a, interface=name, wire_device="a0"),
        b=End(node=b, interface=name, wire_device="b0"),
        inner=("i0", "i1"),
        forward=spec,
        backward=spec,
    )
