//! Tests of `event`.

use super::*;

/// Defines `every_event` from one row per variant. A variant without a row does not compile.
macro_rules! events {
    ($($variant:pat => $value:expr,)*) => {
        fn every_event() -> Vec<AuditEvent> {
            fn assert_has_row(event: &AuditEvent) {
                match event {
                    $($variant => {})*
                }
            }
            let events = vec![$($value),*];
            events.iter().for_each(assert_has_row);
            events
        }
    };
}

events! {
    AuditEvent::Load { .. } => AuditEvent::Load { plugin: PluginRecord::default(), tools: 0 },
    AuditEvent::Grant { .. } => AuditEvent::Grant { plugin: PluginRecord::default(), previous: None },
    AuditEvent::Refused { .. } => AuditEvent::Refused {
        plugin: PluginRecord::default(),
        reason: String::new(),
    },
    AuditEvent::Held { .. } => AuditEvent::Held {
        plugin: PluginRecord::default(),
        component: None,
        grant: None,
        reason: String::new(),
    },
    AuditEvent::VersionApproval(_) => AuditEvent::VersionApproval(Box::default()),
    AuditEvent::Removed { .. } => AuditEvent::Removed { plugin: PluginRecord::default() },
    AuditEvent::Call(_) => AuditEvent::Call(Box::default()),
    AuditEvent::Denied { .. } => AuditEvent::Denied {
        subject: CallSubject::default(),
        message: String::new(),
        remedy: None,
    },
    AuditEvent::Approval { .. } => AuditEvent::Approval {
        subject: CallSubject::default(),
        decision: "requested",
        arguments: None,
        waited_ms: None,
        answered_by: None,
    },
    AuditEvent::Limit { .. } => AuditEvent::Limit {
        subject: CallSubject::default(),
        limit: "limits.fuel",
    },
    AuditEvent::Rejected(_) => AuditEvent::Rejected(RejectedRecord {
        caller: String::new(),
        tool: String::new(),
        outcome: "busy",
        limit: None,
        count: 1,
    }),
    AuditEvent::Operator(_) => AuditEvent::Operator(Box::new(OperatorRecord {
        caller: String::new(),
        action: "disable",
        plugin: None,
        outcome: "ok",
    })),
    AuditEvent::Start(_) => AuditEvent::Start(Box::new(LogStart {
        version: "0",
        key: String::new(),
        rejected: None,
        recovery: RecoveryReport::default(),
    })),
    AuditEvent::Stop {} => AuditEvent::Stop {},
    AuditEvent::Checkpoint { .. } => AuditEvent::Checkpoint {
        signature: String::new(),
        rejected: None,
    },
    AuditEvent::Rotate { .. } => AuditEvent::Rotate { oldest: 1, rejected: None },
    AuditEvent::Lost { .. } => AuditEvent::Lost { lines: 1, reason: "disk" },
}

#[test]
fn names_are_those_of_all_events() {
    let names: Vec<String> = every_event()
        .iter()
        .map(|event| {
            let line = serde_json::to_value(event).unwrap();
            line["event"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(names, AuditEvent::NAMES);
}
