"""How near likely starts are to those of an exact play, by how closely draws follow the scheduler.

An exact play ends each run by itself and searches for all that wait. Its own answers differ by the
seed, the less the more draws they are of: no shortcut can be nearer to it than another seed is. So
there are many more draws here than in service, whose differences would else be those of the draws.
"""

import time
from collections.abc import Mapping

from figures import Aim, Figures

from benchmarks.forecasting.speed import draw_lengths
from benchmarks.scheduling import Scene, make_scene
from simulation import Outlook, StartForecast, forecast_starts
from simulation.forks import count_processors
from simulation.playing import COARSE, COARSEST, THOROUGH, Precision

SCENE = Scene(20, 100, False)
EXACT = Precision(is_thorough=True, merged_share=0.0)
WAYS = (("thorough", THOROUGH), ("coarse", COARSE), ("coarsest", COARSEST))
NEAR_SHARE, NEAR_SECONDS = 0.1, 60.0
AIM = Aim(95.0, at_least=True)
DRAWS = 100


def measure_precision() -> None:
    """Measure what each way makes of the same cluster and run lengths."""
    print("\nLikely starts within a tenth, or a minute, of those of an exact play")
    figures = Figures()
    state = make_scene(SCENE)
    lengths = draw_lengths(state)

    def forecast(name: str, precision: Precision, seed: int) -> Mapping[str, StartForecast]:
        began = time.perf_counter()
        forecasts = forecast_starts(
            state,
            lengths,
            seed=seed,
            precision=precision,
            processes=count_processors(),
            least_draws=DRAWS,
        )
        figures.add(f"{name}, s", time.perf_counter() - began)
        return forecasts

    exact = forecast("exact", EXACT, 1)
    figures.add("exact with another seed, %", compare(exact, forecast("exact again", EXACT, 2)))
    for name, precision in WAYS:
        near = compare(exact, forecast(name, precision, 1))
        figures.add(f"{name}, %", near, AIM)


def compare(exact: Mapping[str, StartForecast], others: Mapping[str, StartForecast]) -> float:
    """Return the share of likely starts that are near to the exact ones, in percent."""
    pairs = [
        (forecast.likely, others[key].likely)
        for key, forecast in exact.items()
        if forecast.outlook is Outlook.STARTS and forecast.likely is not None
    ]
    near = sum(
        other is not None and abs(other - likely) <= NEAR_SHARE * likely + NEAR_SECONDS
        for likely, other in pairs
    )
    return 100 * near / len(pairs)
