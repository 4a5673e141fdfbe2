"""Test kits that ship with the package: faulty stores, seeded worlds, deterministic races.

``tablewright.testing.store_conformance`` and ``.strategies`` need pytest and Hypothesis: import them by name.
"""

from tablewright.testing.faulty_store import (
    EVERY_FAULT,
    Call,
    CrashAfter,
    CrashBefore,
    DenyCreation,
    FailBefore,
    Fault,
    FaultyStore,
    LoseReply,
    Pause,
    Plan,
    SimulatedCrash,
    StaleList,
    at_call,
    every_single_fault,
    first_of,
    on_call,
)
from tablewright.testing.interleave import Gate, Outcome, interleave
from tablewright.testing.worlds import SeededClock, SeededIds, memory_world, seeded_world

__all__ = [
    "EVERY_FAULT",
    "Call",
    "CrashAfter",
    "CrashBefore",
    "DenyCreation",
    "FailBefore",
    "Fault",
    "FaultyStore",
    "Gate",
    "LoseReply",
    "Outcome",
    "Pause",
    "Plan",
    "SeededClock",
    "SeededIds",
    "SimulatedCrash",
    "StaleList",
    "at_call",
    "every_single_fault",
    "first_of",
    "interleave",
    "memory_world",
    "on_call",
    "seeded_world",
]
