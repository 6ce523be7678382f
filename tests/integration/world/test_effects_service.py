"""The effects service, in the world's process."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from harness.model.workload import Command, Workload
from harness.world.client import World
from harness.world.ledger import Effect, EffectLedger
from harness.world.services.effects import EffectsService
from worker_under_test.adapters.http_effects import HttpEffects
from worker_under_test.domain.errors import DeliveryError, Kind, kind_of

if TYPE_CHECKING:
    from pathlib import Path

WORKLOAD = Workload((), fresh=Command("fresh"))


@pytest.mark.requirement("PLN-30", "INV-3", "HAR-02")
def test_an_effect_happens_once_per_key_and_every_request_is_kept(tmp_path: Path) -> None:
    """A repeat, now or later, has no effect, and the ledger tells requests from effects."""
    with World.start() as world:
        for _ in range(2):
            endpoint = world.open(tmp_path / "w", (EffectsService,), WORKLOAD)
            for key in ("r/a", "r/b"):
                asyncio.run(HttpEffects(endpoint).apply("step", key, "t"))
            world.close_services()
    assert EffectLedger(tmp_path / "w").effects() == (
        Effect("step", "r/a", "t"),
        Effect("step", "r/b", "t"),
        Effect("step-repeat", "r/a", "t"),
        Effect("step-repeat", "r/b", "t"),
    )


@pytest.mark.requirement("DEL-07")
def test_a_refusal_has_its_kind_and_a_silence_has_none(tmp_path: Path) -> None:
    """The worker can tell "it did not happen" from "nobody knows"."""
    with World.start() as world:
        endpoint = world.open(tmp_path / "w", (EffectsService,), WORKLOAD)
        with pytest.raises(DeliveryError) as refusal:
            asyncio.run(HttpEffects(endpoint).apply("step", "", "t"))
        world.close_services()
        with pytest.raises(DeliveryError) as silence:
            asyncio.run(HttpEffects(endpoint).apply("step", "r/a", "t"))
    assert kind_of(refusal.value) is Kind.INVALID
    assert kind_of(silence.value) is None
    assert EffectLedger(tmp_path / "w").effects() == ()
