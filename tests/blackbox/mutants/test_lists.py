"""The lists of mutants themselves: a mutant whose words are gone from the source breaks nothing, and proves nothing."""

from __future__ import annotations

import pytest

from tests.blackbox.mutants import (
    test_mutants,
    test_reading_mutants,
    test_sandbox_mutants,
    test_trust_mutants,
)
from tests.blackbox.mutants.patching import ROOT, Mutant

LISTS = (test_mutants, test_reading_mutants, test_sandbox_mutants, test_trust_mutants)
MUTANTS = [mutant for module in LISTS for mutant in module.MUTANTS]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_words_of_a_mutant_stand_once_in_the_source(mutant: Mutant) -> None:
    assert (ROOT / mutant.file).read_text("utf-8").count(mutant.was) == 1
    assert mutant.was != mutant.becomes


def test_no_two_mutants_have_one_name() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert sorted(set(names)) == sorted(names)


def test_every_name_that_continuous_integration_tries_is_a_mutant() -> None:
    for module in LISTS:
        assert {mutant.name for mutant in module.MUTANTS} >= module.IN_CI
