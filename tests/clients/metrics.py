"""The metrics of a server, read by the official Python client of Prometheus, in both of its formats."""

from collections.abc import Callable
from urllib.parse import urljoin
from urllib.request import Request, urlopen

from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open
from prometheus_client.parser import text_string_to_metric_families as read_plain

Check = Callable[[str, bool, object], None]

FORMATS = {"text/plain": read_plain, "application/openmetrics-text": read_open}
"""What reads each format, by what it is asked for with."""


def scrape(server: str, kind: str) -> tuple[str, dict[str, Metric]]:
    """Returns the metrics of a server, and their content type."""
    with urlopen(Request(urljoin(server, "/metrics"), headers={"Accept": kind}), timeout=30) as answer:
        text = answer.read().decode()
        families = {family.name: family for family in FORMATS[kind](text)}
        return answer.headers["Content-Type"].split(";")[0], families


def metrics(server: str, check: Check) -> None:
    """Reads the metrics of a server on which tools were called."""
    for kind in FORMATS:
        said, families = scrape(server, kind)
        check(f"the metrics come as {kind}", said == kind, said)
        kinds = {name: families[name].type for name in ["toolbay_calls", "toolbay_call_duration_seconds", "toolbay_plugins"]}
        check("a counter, a histogram and a gauge are what they are", [*kinds.values()] == ["counter", "histogram", "gauge"], kinds)
        ended = {tuple(sample.labels.values()) for sample in families["toolbay_calls"].samples if sample.value > 0}
        wanted = {("calculate_sum", "ok"), ("calculate_sum", "invalid-arguments"), ("(other)", "unknown-tool")}
        check("calls count by tool and outcome", wanted <= ended, wanted - ended)
        check("the process is counted", families["process_resident_memory_bytes"].samples[0].value > 1e6, families)
