//! Keys that give a plugin a right, that say how the server stores and sends data for plugins, or
//! that say what the server reports of their calls. Each key has a test of what it grants and a
//! test of what happens without it. A typo in a key is an error that names the key.

use crate::pages::has_test;
use crate::support::{Folder, TinyComponent, ToolbayCommand};

/// A table of a grant or of the configuration.
struct Table {
    name: &'static str,
    /// The lines before a key of the table: `[…]` headers, in the grant or in `toolbay.toml`.
    head: &'static str,
    configures: bool,
    /// Each key, with a test of what it grants and a test of what its absence denies.
    keys: &'static [(&'static str, &'static str, &'static str)],
}

const PREFIX: &str = "reload::a_broken_grant_keeps_the_last_good_version";
const LENIENT: &str =
    "arguments::strict_in_a_grant_overrides_the_server_and_lenient_in_a_grant_suffices";
const STRICT: &str = "arguments::by_default_nothing_is_converted_and_the_error_has_an_example";
const SEPARATOR: &str = "schemas::names_have_the_separator_of_the_grant";
const APPROVE: &str =
    "approval::scope::approval_of_a_tool_overrides_the_grant_which_overrides_the_server";
const CONSOLE: &str =
    "approval::console_only::every_revision_waits_for_the_operator_whatever_the_client_can_do";
const CONSOLE_OFF: &str =
    "approval::every_revision_with_forms_asks_a_person_before_the_plugin_is_entered";
const BUDGET: &str = "budgets::a_budget_of_calls_is_used_up_also_after_a_restart";
const NO_BUDGET: &str = "budgets::without_a_budget_calls_are_not_counted";
const RATE: &str = "rates::a_rate_limit_applies_to_each_tool_of_a_plugin_separately";
const CONFIG: &str = "isolation::configuration_reaches_the_plugin";
const TOOLS: &str =
    "grants::a_grant_for_a_tool_that_does_not_exist_is_refused_with_the_nearest_name";
const MOUNTED: &str = "isolation::a_read_only_mount_can_only_be_read";
const UNMOUNTED: &str = "isolation::without_a_grant_a_plugin_has_no_files_and_no_network";
const SCRATCH: &str = "files::scratch::the_grant_sets_the_path_and_size_of_a_temporary_folder";
const BY_DEFAULT: &str = "files::scratch::a_temporary_folder_without_keys_has_the_defaults";
const STATE: &str = "state::an_operation_beyond_a_quota_fails_and_names_the_key_to_raise";
const SENT: &str = "requests::a_request_that_the_grant_allows_is_sent";
const NOT_SENT: &str =
    "requests::without_a_grant_no_request_is_sent_and_the_log_names_the_missing_permission";
const BOUNDED: &str = "requests::requests_are_limited_to_the_granted_methods_and_paths";
const SOURCE: &str = "sources::the_value_of_each_source_reaches_only_the_request";
const NO_SOURCE: &str = "sources::a_request_whose_secret_has_no_value_is_not_sent";
const CARRIED: &str = "requests::requests_carry_secrets_that_the_tool_cannot_read";
const VIEWS: &str = "views::every_key_of_a_views_grant_is_sent_to_clients";
const NO_VIEWS: &str = "views::without_a_grant_clients_receive_no_permissions_of_a_view";
const LOGGED: &str = "audit::every_call_has_a_line_that_says_how_it_ended";
const SPANS: &str = "otel::a_call_is_a_span_with_the_names_of_the_conventions";
const NOTHING_SENT: &str = "otel::without_an_endpoint_nothing_is_sent_and_no_request_gets_a_trace";
const PARTS: &str = "otel::settings::disabled_signals_are_not_sent_and_traces_can_be_sampled";
const VARIABLES: &str =
    "otel::settings::opentelemetry_variables_apply_only_if_the_configuration_allows_them";
const HEADERS: &str = "otel::settings::headers_come_from_files_and_variables";

const TABLES: &[Table] = &[
    Table {
        name: "the grant",
        head: "\n",
        configures: false,
        keys: &[
            ("prefix", PREFIX, PREFIX),
            ("separator", SEPARATOR, SEPARATOR),
            ("require_approval", APPROVE, APPROVE),
            ("approve_by", CONSOLE, CONSOLE_OFF),
            ("arguments", LENIENT, STRICT),
            (
                "enabled_tools",
                "grants::only_the_tools_that_a_grant_lists_are_offered",
                "grants::without_enabled_tools_every_tool_is_offered",
            ),
            (
                "component",
                "grants::a_grant_for_one_file_is_not_inherited_by_another",
                "grants::a_grant_without_a_digest_allows_another_file",
            ),
            (
                "until",
                "grants::a_grant_ends_at_the_time_that_it_states",
                "grants::a_grant_without_an_end_does_not_end",
            ),
            (
                "limits",
                "limits::the_grant_raises_every_limit",
                "limits::every_default_limit_holds",
            ),
            (
                "rate_limit",
                RATE,
                "rates::the_server_can_limit_the_rate_of_every_tool_and_of_a_client",
            ),
            ("budget", BUDGET, NO_BUDGET),
            ("permissions", MOUNTED, UNMOUNTED),
            ("secrets", SOURCE, NO_SOURCE),
            ("config", CONFIG, CONFIG),
            (
                "tools",
                TOOLS,
                "grants::without_enabled_tools_every_tool_is_offered",
            ),
        ],
    },
    Table {
        name: "budget",
        head: "[budget]\n",
        configures: false,
        keys: &[
            ("calls", BUDGET, NO_BUDGET),
            (
                "fuel",
                "budgets::a_call_gets_at_most_the_rest_of_the_fuel_in_the_budget",
                NO_BUDGET,
            ),
            (
                "network_bytes",
                "budgets::requests_send_and_receive_at_most_the_rest_of_the_budget",
                NO_BUDGET,
            ),
            (
                "scope",
                "budgets::each_caller_has_a_budget_of_its_own_only_with_that_scope",
                "budgets::each_caller_has_a_budget_of_its_own_only_with_that_scope",
            ),
        ],
    },
    Table {
        name: "permissions",
        head: "[permissions]\n",
        configures: false,
        keys: &[
            (
                "environment",
                "isolation::the_environment_has_only_the_granted_variables",
                "secrets::a_secret_alone_gives_the_plugin_no_access_to_the_variable",
            ),
            ("mounts", MOUNTED, UNMOUNTED),
            (
                "scratch",
                SCRATCH,
                "files::scratch::there_is_no_temporary_folder_without_a_grant",
            ),
            ("http", SENT, NOT_SENT),
            (
                "tcp",
                "sockets::a_granted_host_can_be_connected_to_by_name_and_by_address",
                "sockets::without_a_grant_no_connection_is_made_and_the_log_names_the_missing_permission",
            ),
            (
                "private_networks",
                SENT,
                "requests::an_address_that_is_not_global_needs_a_grant_of_its_own",
            ),
            (
                "deterministic",
                "determinism::the_same_call_has_the_same_clocks_and_random_numbers",
                "determinism::without_determinism_each_call_differs",
            ),
            (
                "state",
                "state::every_operation_of_both_drafts_works",
                "state::without_a_grant_no_state_is_stored_and_the_log_names_the_missing_permission",
            ),
            ("ui", VIEWS, NO_VIEWS),
        ],
    },
    Table {
        name: "permissions.ui",
        head: "[permissions.ui]\n",
        configures: false,
        keys: &[
            ("connect", VIEWS, NO_VIEWS),
            ("resources", VIEWS, NO_VIEWS),
            ("frames", VIEWS, NO_VIEWS),
            ("base", VIEWS, NO_VIEWS),
            ("permissions", VIEWS, NO_VIEWS),
            ("domain", VIEWS, NO_VIEWS),
        ],
    },
    Table {
        name: "permissions.mounts",
        head: "[[permissions.mounts]]\n",
        configures: false,
        keys: &[
            ("host", MOUNTED, UNMOUNTED),
            ("guest", MOUNTED, "hostile::escapes::uses_no_mount"),
            (
                "access",
                "isolation::a_read_write_mount_allows_no_access_outside_of_it",
                MOUNTED,
            ),
            (
                "scope",
                "files::callers::each_caller_has_a_folder_of_its_own",
                "files::callers::without_scope_all_callers_share_the_folder",
            ),
            (
                "quota",
                "files::quota::a_quota_bounds_the_lengths_of_all_files_together",
                "files::quota::a_folder_without_a_quota_is_unlimited",
            ),
            (
                "entries",
                "files::quota::the_entries_quota_counts_files_folders_and_links",
                "files::quota::a_folder_without_a_quota_is_unlimited",
            ),
            (
                "unsafe",
                "mounts::a_writable_mount_does_not_contain_the_plugin_folder",
                "mounts::after_a_refused_grant_the_previous_version_stays_in_service",
            ),
        ],
    },
    Table {
        name: "permissions.scratch",
        head: "[permissions.scratch]\n",
        configures: false,
        keys: &[
            (
                "guest",
                SCRATCH,
                "files::scratch::a_temporary_folder_is_empty_at_the_start_and_removed_at_the_end",
            ),
            ("size", SCRATCH, BY_DEFAULT),
            ("entries", SCRATCH, BY_DEFAULT),
        ],
    },
    Table {
        name: "permissions.state",
        head: "[permissions.state]\n",
        configures: false,
        keys: &[
            (
                "size",
                STATE,
                "state::without_size_and_keys_the_default_quotas_apply",
            ),
            (
                "keys",
                STATE,
                "state::without_size_and_keys_the_default_quotas_apply",
            ),
            (
                "scope",
                "state::each_caller_has_a_separate_state_if_the_grant_has_that_scope",
                "state::without_scope_all_callers_share_the_state",
            ),
        ],
    },
    Table {
        name: "an entry of permissions.http",
        head: "[[permissions.http]]\n",
        configures: false,
        keys: &[
            ("origin", BOUNDED, NOT_SENT),
            ("methods", BOUNDED, SENT),
            ("paths", BOUNDED, SENT),
        ],
    },
    Table {
        name: "secrets.NAME",
        head: "[secrets.a]\n",
        configures: false,
        keys: &[
            ("environment", SOURCE, NO_SOURCE),
            ("file", SOURCE, NO_SOURCE),
            ("keyring", SOURCE, NO_SOURCE),
            ("command", SOURCE, NO_SOURCE),
            (
                "caller_folder",
                SOURCE,
                "sources::a_caller_without_its_own_value_gets_no_other_value",
            ),
            (
                "origins",
                CARRIED,
                "secrets::a_secret_is_redacted_everywhere",
            ),
            (
                "header",
                CARRIED,
                "secrets::a_secret_is_redacted_everywhere",
            ),
            ("query", CARRIED, SOURCE),
            ("format", CARRIED, SOURCE),
        ],
    },
    Table {
        name: "secrets.NAME.keyring",
        head: "[secrets.a.keyring]\n",
        configures: false,
        keys: &[("service", SOURCE, NO_SOURCE), ("user", SOURCE, NO_SOURCE)],
    },
    Table {
        name: "http_client",
        head: "[http_client]\n",
        configures: true,
        keys: &[
            (
                "extra_ca",
                "requests::a_certificate_is_trusted_if_its_authority_is_listed",
                "requests::a_certificate_is_trusted_if_its_authority_is_listed",
            ),
            (
                "proxy",
                "requests::every_request_goes_through_the_configured_proxy",
                SENT,
            ),
        ],
    },
    Table {
        name: "state",
        head: "[state]\n",
        configures: true,
        keys: &[
            (
                "folder",
                "state::no_state_is_stored_if_the_folder_is_empty_or_unusable",
                "state::a_variable_sets_the_folder",
            ),
            (
                "size",
                STATE,
                "state::without_size_and_keys_the_default_quotas_apply",
            ),
        ],
    },
    Table {
        name: "audit",
        head: "[audit]\n",
        configures: true,
        keys: &[
            (
                "folder",
                LOGGED,
                "audit::without_a_folder_nothing_is_written",
            ),
            (
                "file_size",
                "audit::ten_thousand_mixed_calls_are_all_logged_and_verified",
                "audit::without_a_size_a_file_holds_more_than_the_smallest_size",
            ),
            (
                "files",
                "audit::the_oldest_files_are_deleted_beyond_the_configured_number",
                "audit::the_oldest_files_are_deleted_beyond_the_configured_number",
            ),
            (
                "rejected_files",
                "audit::rejections::denials_displace_no_calls_and_their_oldest_files_are_deleted",
                "audit::rejections::denials_displace_no_calls_and_their_oldest_files_are_deleted",
            ),
            (
                "arguments",
                "audit::full_arguments_are_logged_without_secrets",
                LOGGED,
            ),
            (
                "checkpoint",
                "audit::signatures_are_written_at_the_configured_interval",
                "audit::signatures_are_written_at_the_configured_interval",
            ),
            (
                "when_full",
                "audit::full::with_refuse_a_full_log_rejects_calls_with_a_reason",
                "audit::full::by_default_calls_wait_for_a_full_disk_and_no_line_is_lost",
            ),
        ],
    },
    Table {
        name: "record",
        head: "[record]\n",
        configures: true,
        keys: &[
            (
                "file",
                "replay::clocks_and_random_numbers_are_replayed",
                "replay::only_calls_that_the_configuration_selects_are_recorded",
            ),
            (
                "size",
                "replay::only_calls_that_the_configuration_selects_are_recorded",
                "replay::ten_thousand_calls_of_all_kinds_are_replayed_with_the_same_results",
            ),
            (
                "call_size",
                "replay::only_a_digest_of_a_call_that_is_too_large_is_recorded",
                "replay::ten_thousand_calls_of_all_kinds_are_replayed_with_the_same_results",
            ),
            (
                "tools",
                "replay::only_calls_that_the_configuration_selects_are_recorded",
                "replay::ten_thousand_calls_of_all_kinds_are_replayed_with_the_same_results",
            ),
        ],
    },
    Table {
        name: "otel",
        head: "[otel]\n",
        configures: true,
        keys: &[
            ("endpoint", SPANS, NOTHING_SENT),
            ("headers", HEADERS, SPANS),
            (
                "extra_ca",
                "otel::settings::a_collector_is_trusted_if_its_authority_is_listed",
                "otel::settings::a_collector_is_trusted_if_its_authority_is_listed",
            ),
            ("traces", SPANS, PARTS),
            (
                "metrics",
                "otel::exported_metrics_equal_the_served_metrics",
                PARTS,
            ),
            (
                "logs",
                "otel::log_records_have_the_trace_of_their_call_and_no_secrets",
                PARTS,
            ),
            ("metrics_interval", PARTS, SPANS),
            (
                "timeout",
                "otel::attacks::no_call_waits_for_a_collector",
                SPANS,
            ),
            ("service_name", VARIABLES, SPANS),
            ("resource", VARIABLES, SPANS),
            ("sample_ratio", PARTS, SPANS),
            (
                "include_caller",
                "otel::over_standard_input_each_session_has_an_id",
                SPANS,
            ),
            ("use_environment", VARIABLES, NOTHING_SENT),
        ],
    },
];

/// Returns the messages to the operator about a line in a table.
fn list_output(table: &Table, line: &str) -> String {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let text = format!("{}{line}\n", table.head);
    if table.configures {
        folder.write_config(&text);
    } else {
        folder.put("a.toml", text);
    }
    let outcome = ToolbayCommand::new(&folder).args(["list"]).run();
    assert_eq!(
        outcome.code,
        if table.configures { 64 } else { 0 },
        "{outcome}"
    );
    format!("{}{}", outcome.stdout, outcome.stderr)
}

/// Returns the keys of a table, as listed in the server's own error.
fn valid_keys(table: &Table) -> Vec<String> {
    let said = list_output(table, "q_q_q_q_q = 1");
    let (_, rest) = said
        .split_once("unknown key `q_q_q_q_q`; valid keys are ")
        .unwrap_or_else(|| panic!("{said}"));
    rest.lines()
        .next()
        .unwrap()
        .split(", ")
        .map(|key| key.trim().to_owned())
        .collect()
}

#[test]
fn every_key_names_a_test_that_it_grants_and_a_test_that_its_absence_denies() {
    for table in TABLES {
        let listed: Vec<&str> = table.keys.iter().map(|(key, ..)| *key).collect();
        assert_eq!(
            valid_keys(table),
            listed,
            "[{}] has keys without a row here",
            table.name
        );
        for (key, grants, denies) in table.keys {
            for test in [grants, denies] {
                assert!(
                    has_test(test),
                    "{}.{key} names the test {test}, which does not exist",
                    table.name
                );
            }
        }
    }
}

#[test]
fn a_typo_in_a_key_is_an_error_with_its_place_and_the_nearest_key() {
    for table in TABLES {
        for (key, ..) in table.keys {
            let typo = format!("{key}x");
            let said = list_output(table, &format!("{typo} = 1"));
            let file = if table.configures {
                "toolbay.toml"
            } else {
                "a.toml"
            };
            let expected = format!("unknown key `{typo}`; did you mean `{key}`?");
            assert!(
                said.contains(&expected) && said.contains(&format!("{file}:2:1: ")),
                "{}: {said}",
                table.name
            );
        }
    }
}

/// `[config]` accepts any key of the operator: none is a typo.
#[test]
fn the_config_table_accepts_any_key() {
    assert!(
        has_test("isolation::configuration_reaches_the_plugin"),
        "it also asks for a key that is not there"
    );
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    folder.put("a.toml", "[config]\nq_q_q_q_q = 1\n");
    let outcome = ToolbayCommand::new(&folder).args(["list"]).run();
    assert!(
        outcome.code == 0 && outcome.stdout.contains("q_q_q_q_q"),
        "{outcome}"
    );
}
