//! What operators read: what was counted, and what the parts of the server know of themselves.

use toolbay_catalog::{Snapshot, Status};
use toolbay_mcp::{MetricsForm, Traffic};
use toolbay_otel::Family;

use crate::metrics::{Figures, Process, families, write};
use crate::service::Service;

/// The metrics of a server as text; `None` if there are none. Blocks: it looks at files of the system.
pub(crate) fn measured(service: &Service, form: MetricsForm, traffic: Traffic) -> Option<String> {
    write(gathered(service, Some(traffic))?, form)
}

/// The metrics of a server; `None` if there are none. Blocks: it looks at files of the system.
pub(crate) fn gathered(service: &Service, traffic: Option<Traffic>) -> Option<Vec<Family>> {
    let metrics = service.metrics()?;
    let (snapshot, admission) = (service.catalog().snapshot(), service.admission());
    let figures = Figures {
        running: admission.running(),
        suspended: admission.suspended(),
        waiting: admission.waiting(),
        reserved: admission.reserved(),
        reloads: snapshot.generation,
        plugins: plugins(&snapshot),
        offered: [
            ("tool", snapshot.tools.len() as u64),
            ("prompt", snapshot.prompts.len() as u64),
            ("resource", snapshot.resources.len() as u64),
            ("template", snapshot.templates.len() as u64),
            ("skill", snapshot.skills.len() as u64),
        ],
        compilations: service.sandbox().compilations(),
        traffic,
        state: service.state_size(),
        lost: service.lost_lines(),
        unsent: service.telemetry().map(toolbay_otel::Telemetry::lost),
        process: Process::read(),
    };
    Some(families(metrics, &figures))
}

/// How many plugins have which status.
fn plugins(snapshot: &Snapshot) -> [(&'static str, u64); 4] {
    [(Status::Loading, "loading"), (Status::Ready, "ready"), (Status::Stale, "stale"), (Status::Refused, "refused")]
        .map(|(status, word)| {
            let count = snapshot.plugins.values().filter(|report| report.status == status).count();
            (word, count as u64)
        })
}
