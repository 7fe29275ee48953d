"""Laws of the token noise: spectra of Z'Z/p, covariances, entries."""

from resolvent.laws.entries import UNEQUAL_NORMS, EntryLaw, entry_law
from resolvent.laws.generalised import generalised_marchenko_pastur
from resolvent.laws.law import Law, empirical
from resolvent.laws.marchenko_pastur import marchenko_pastur
from resolvent.laws.population import Population, autoregressive, population, power_law, spiked

__all__ = [
    "UNEQUAL_NORMS",
    "EntryLaw",
    "Law",
    "Population",
    "autoregressive",
    "empirical",
    "entry_law",
    "generalised_marchenko_pastur",
    "marchenko_pastur",
    "population",
    "power_law",
    "spiked",
]
