//! Tests of `config`.

use std::time::Duration;

use bytesize::ByteSize;
use toolbay_model::Limits;

use super::location::CONFIG_FILE_NAME;
use super::variables::CONFIG_VARIABLE;
use super::*;

/// Creates a directory with `plugins/` and a configuration file with this text.
fn load(text: &str, variables: &[(&str, &str)], flags: Flags) -> Result<Config, String> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("plugins")).unwrap();
    let file = dir.path().join(CONFIG_FILE_NAME);
    std::fs::write(&file, text).unwrap();
    let variables = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Config::load(
        &Flags {
            config: Some(file),
            ..flags
        },
        variables,
    )
    .map_err(|error| {
        error
            .to_string()
            .replace(&format!("{}/", dir.path().display()), "")
    })
}

#[test]
fn each_layer_wins_over_the_one_below() {
    let text = "log = \"warn\"\npage_size = 7\n[limits]\nfuel = 1\ntimeout = \"1s\"";
    let variables = [
        ("TOOLBAY_PAGE_SIZE", "8"),
        ("TOOLBAY_LIMITS_FUEL", "2"),
        ("TOOLBAY_LOG", "error"),
        ("PATH", "x"),
    ];
    let flags = Flags {
        log: Some("debug".into()),
        ..Flags::default()
    };
    let config = load(text, &variables, flags).unwrap();
    assert_eq!((config.page_size, config.log.as_str()), (8, "debug"));
    assert_eq!(
        (config.limits.fuel, config.limits.timeout),
        (Some(2), Some(Duration::from_secs(1)))
    );
}

#[test]
fn a_proxy_password_is_accepted_only_in_a_variable() {
    let proxy = |text: &str, variables: &[(&str, &str)]| {
        Ok::<_, String>(
            load(text, variables, Flags::default())?
                .http_client
                .options()
                .proxy
                .map(String::from),
        )
    };
    let plain = "[http_client]\nproxy = \"http://proxy.example:3128\"";
    assert_eq!(proxy("", &[]).unwrap(), None);
    assert_eq!(
        proxy(plain, &[]).unwrap().unwrap(),
        "http://proxy.example:3128/"
    );
    let with_password = "http://ada:s3cret-word@other.example:8080";
    let variable = [("TOOLBAY_HTTP_CLIENT_PROXY", with_password)];
    assert_eq!(
        proxy(plain, &variable).unwrap().unwrap(),
        format!("{with_password}/")
    );
    assert!(!format!("{:?}", load("", &variable, Flags::default()).unwrap()).contains("s3cret"));
    let refused = [
        proxy(&format!("[http_client]\nproxy = {with_password:?}"), &[]).unwrap_err(),
        proxy(
            "[http_client]\nproxy = \"https://ada:s3cret-word@proxy.example\"",
            &[],
        )
        .unwrap_err(),
        proxy(
            "[http_client]\nproxy = \"ada:s3cret-word@proxy.example\"",
            &[],
        )
        .unwrap_err(),
        proxy("[http_client]\nproxy = \"http://ada:s3cret-word@/\"", &[]).unwrap_err(),
        proxy("[http_client]\nproxy = 3128", &[]).unwrap_err(),
        proxy("[http_client]\nprox = \"http://proxy.example:3128\"", &[]).unwrap_err(),
        proxy(
            "",
            &[(
                "TOOLBAY_HTTP_CLIENT_PROXY",
                "socks5://ada:s3cret-word@proxy.example",
            )],
        )
        .unwrap_err(),
        proxy("", &[("TOOLBAY_HTTP_CLIENT_PROXI", "http://proxy.example")]).unwrap_err(),
        proxy(
            "",
            &[("TOOLBAY_HTTP_CLIENTS_PROXY", "http://proxy.example")],
        )
        .unwrap_err(),
    ];
    insta::assert_snapshot!(refused.join("\n"));
}

#[test]
fn mistakes_are_reported_with_their_position_and_the_expected_value() {
    let variable = |name, value| load("", &[(name, value)], Flags::default()).unwrap_err();
    let file = |text| load(text, &[], Flags::default()).unwrap_err();
    let said = [
        file("page_sise = 1"),
        file("[limits]\nfuel = \"a lot\""),
        file("page_size = 0"),
        file("[server]\nstack_size = \"1KiB\""),
        file("[server]\ncalls = 5000"),
        file("log = \"inof\""),
        file("plugins = \"nowhere\""),
        file("plugins = \"\""),
        file("server = 7"),
        file("[server]\nqueue = 9_000_000"),
        file("[server]\nrequest_memory = \"1KiB\""),
        file("[server]\nrequest_memory = \"63MiB\""),
        file("[server]\nscratch = \"\""),
        file("[server]\nscrach = \"tmp\""),
        file("[circuit_breaker]\ndisable_duration = \"500000years\""),
        file("[caller_rate_limit]\ncalls = 1\nper = \"600years\""),
        file("[audit]\nfodler = \"audit\""),
        file("[audit]\nfiles = 1"),
        file("[audit]\nfiles = 100_000"),
        file("[audit]\nfile_size = \"1KiB\""),
        file("[audit]\narguments = \"all\""),
        variable("TOOLBAY_AUDIT_FODLER", "audit"),
        variable("TOOLBAY_PAGE_SISE", "1"),
        variable("TOOLBAY_A:B", "1"),
        variable("TOOLBAY_LIMITS_FUEL", "a lot"),
        variable("TOOLBAY_LIMITS_FUEL", "0"),
        variable("TOOLBAY_LIMITS_MEMORY", "lots"),
        variable("TOOLBAY_LOG", "loud"),
        variable("TOOLBAY_USAGE", "yes"),
        variable("TOOLBAY_PLUGINS", ""),
        variable("TOOLBAY_LIMIT_TIMEOUT", "1s"),
    ];
    insta::assert_snapshot!(said.join("\n"), @r#"
        toolbay.toml:1:1: unknown key `page_sise`; did you mean `page_size`?
        toolbay.toml:2:8: limits.fuel: expected an integer of at least 1, not "a lot"
        toolbay.toml:1:13: page_size: expected an integer of at least 1, not 0
        toolbay.toml:2:14: server.stack_size: expected a size from 64.0 KiB to 8.0 MiB, not 1.0 KiB
        toolbay.toml:2:9: server.calls: expected at most 4096, not 5000
        toolbay.toml:1:7: log: "inof" is not a level; did you mean "info"?
        the plugin folder nowhere does not exist; create it, or set another one with --plugins
        plugins: expected the path of a folder, not an empty string
        toolbay.toml:1:10: server: expected a table, not 7
        toolbay.toml:2:9: server.queue: expected at most 1000000, not 9000000
        toolbay.toml:2:18: server.request_memory: expected a size from 64.0 KiB to 4.0 TiB, not 1.0 KiB
        server.request_memory: expected at least 64.0 MiB, 16 times server.request_size, not 63.0 MiB
        server.scratch: expected the path of a folder, not an empty string
        toolbay.toml:2:1: unknown key `scrach`; did you mean `scratch`?
        toolbay.toml:2:20: circuit_breaker.disable_duration: expected a duration of at most 1 day, not "500000years"
        toolbay.toml:3:7: caller_rate_limit.per: expected a duration of at most 1 year, not "600years"
        toolbay.toml:2:1: unknown key `fodler`; did you mean `folder`?
        toolbay.toml:2:9: audit.files: expected at least 2, not 1
        toolbay.toml:2:9: audit.files: expected at most 10000, not 100000
        toolbay.toml:2:13: audit.file_size: expected a size from 1.0 MiB to 1.0 TiB, not 1.0 KiB
        toolbay.toml:2:13: audit.arguments: expected "digest" or "full", not "all"
        TOOLBAY_AUDIT_FODLER: unknown key `fodler`; did you mean `folder`?
        TOOLBAY_PAGE_SISE: unknown key `page_sise`; did you mean `page_size`?
        TOOLBAY_A:B: unknown key `a:b`; valid keys are plugins, log, log_format, page_size, usage, server, limits, ceilings, caller_rate_limit, rate_limit, require_approval, approve_by, approve, circuit_breaker, describe, compile, lock, engine, http, http_client, audit, state, tasks, results, metrics, console, record, otel
        TOOLBAY_LIMITS_FUEL: expected an integer of at least 1, not "a lot"
        TOOLBAY_LIMITS_FUEL: expected an integer of at least 1, not 0
        TOOLBAY_LIMITS_MEMORY: expected a size above 0, such as "64MiB", not "lots"
        TOOLBAY_LOG: "loud" is not a level; the levels are off, error, warn, info, debug, trace
        TOOLBAY_USAGE: expected true or false, not "yes"
        TOOLBAY_PLUGINS: expected the path of a folder, not an empty string
        TOOLBAY_LIMIT_TIMEOUT is not a variable of Toolbay; did you mean TOOLBAY_LIMITS_TIMEOUT?
        "#);
}

#[test]
fn zero_is_accepted_only_where_it_means_none() {
    let refused = [
        ("limits", "fuel", "0"),
        ("limits", "timeout", "\"0s\""),
        ("limits", "memory", "0"),
        ("limits", "table_elements", "0"),
        ("limits", "instances", "0"),
        ("limits", "memories", "0"),
        ("limits", "transfer", "0"),
        ("limits", "handles", "0"),
        ("limits", "output", "\"0B\""),
        ("limits", "output_items", "0"),
        ("limits", "concurrency", "0"),
        ("ceilings", "fuel", "0"),
        ("server", "calls", "0"),
        ("server", "calls_per_caller", "0"),
        ("server", "request_size", "0"),
        ("server", "component_size", "0"),
        ("server", "stack_size", "0"),
        ("describe", "fuel", "0"),
        ("describe", "timeout", "\"0s\""),
        ("describe", "tools", "0"),
        ("describe", "prompts", "0"),
        ("describe", "resources", "0"),
        ("describe", "schemas", "0"),
        ("describe", "size", "0"),
        ("describe", "skills", "0"),
        ("compile", "memory", "0"),
        ("compile", "cpu_time", "\"0s\""),
        ("compile", "timeout", "\"0s\""),
        ("compile", "cache_size", "0"),
        ("circuit_breaker", "disable_duration", "\"0s\""),
        ("audit", "file_size", "0"),
        ("audit", "files", "0"),
        ("audit", "checkpoint", "\"0s\""),
    ];
    for (table, key, zero) in refused {
        let error = load(&format!("[{table}]\n{key} = {zero}"), &[], Flags::default()).unwrap_err();
        assert!(
            error.starts_with(&format!(
                "toolbay.toml:2:{}: {table}.{key}: expected ",
                key.len() + 4
            )),
            "{error}"
        );
        let variable = format!("TOOLBAY_{table}_{key}").to_uppercase();
        load("", &[(&variable, zero.trim_matches('"'))], Flags::default()).unwrap_err();
    }
    let taken = "[limits]\nrandom = 0\nstdio = 0\nlog = 0\n[server]\nqueue = 0\nsuspended_calls = 0\n\
                     queue_timeout = \"0s\"\ngrace_period = \"0s\"\n\
                     [circuit_breaker]\ncrashes = 0\n[compile]\ncache_folder = \"\"";
    load(taken, &[], Flags::default()).unwrap();
}

#[test]
fn http_has_default_rate_limits() {
    let per_minute = |calls| RateLimit::per_minute(calls);
    let stdio = load("", &[], Flags::default()).unwrap();
    assert_eq!((stdio.caller_rate_limit, stdio.rate_limit), (None, None));
    let http = "[http]\nlisten = \"127.0.0.1:0\"\n";
    let config = load(http, &[], Flags::default()).unwrap();
    assert_eq!(
        (config.caller_rate_limit, config.rate_limit),
        (per_minute(600), per_minute(120).map(Into::into))
    );
    let own = format!("{http}[caller_rate_limit]\ncalls = 7\nper = \"1m\"");
    assert_eq!(
        load(&own, &[], Flags::default()).unwrap().caller_rate_limit,
        per_minute(7)
    );
}

#[test]
fn a_configuration_file_that_is_named_must_exist() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    std::fs::write(dir.path().join("latin"), b"log = \"\xe9\"").unwrap();
    let load = |flag: Option<String>, variable: String| {
        let flags = Flags {
            config: flag.map(PathBuf::from),
            ..Flags::default()
        };
        let error = Config::load(&flags, [(CONFIG_VARIABLE.to_owned(), variable)])
            .unwrap_err()
            .to_string();
        error.replace(&format!("{}/", dir.path().display()), "")
    };
    let said = [
        load(Some(at("nope.toml")), String::new()),
        load(None, at("nope.toml")),
        load(None, dir.path().display().to_string() + "/."),
        load(None, at("latin")),
    ];
    insta::assert_snapshot!(said.join("\n"), @r#"
        nope.toml does not exist (set by --config)
        nope.toml does not exist (set by TOOLBAY_CONFIG)
        . is a folder, not a file (set by TOOLBAY_CONFIG)
        latin is not valid UTF-8
        "#);
}

#[test]
fn an_audit_log_is_kept_only_if_its_folder_is_set_and_no_plugin_may_read_it() {
    for off in [
        "",
        "[audit]\nfile_size = \"2MiB\"",
        "[audit]\nfolder = \"\"",
    ] {
        let config = load(off, &[], Flags::default()).unwrap();
        assert_eq!(config.audit.settings(), None, "{off}");
        assert!(
            config
                .load_policy()
                .guarded_paths
                .iter()
                .all(|guarded| guarded.label != "the audit log")
        );
    }
    let text = "[audit]\nfolder = \"log\"\nfile_size = \"2MiB\"\nfiles = 3\narguments = \"full\"\ncheckpoint = \"5s\"";
    let config = load(text, &[], Flags::default()).unwrap();
    let settings = config.audit.settings().unwrap();
    assert!(
        settings.folder.is_absolute() && settings.folder.ends_with("log"),
        "relative to the file"
    );
    assert_eq!(
        (
            settings.max_file_bytes,
            settings.files,
            settings.checkpoint_interval
        ),
        (2 << 20, 3, Duration::from_secs(5))
    );
    assert_eq!(config.audit.arguments, Arguments::Full);
    let guarded = config.load_policy().guarded_paths;
    let log = guarded
        .iter()
        .find(|guarded| guarded.label == "the audit log")
        .unwrap();
    assert!(log.is_secret && log.path == settings.folder);
}

#[test]
fn ceilings_can_be_raised_and_lowered() {
    let config = load(
        "[ceilings]\nmemory = \"2GiB\"\nfuel = 5\n[limits]\nmemory = \"9GiB\"",
        &[],
        Flags::default(),
    );
    let config = config.unwrap();
    let rules = config.load_policy();
    assert_eq!(
        (rules.ceiling.memory, rules.limits.memory, rules.limits.fuel),
        (ByteSize::gib(2), ByteSize::gib(2), 5)
    );
    assert_eq!(
        config.clamp_messages(),
        [
            "limits.memory = 9.0 GiB was lowered to the server's ceiling, 2.0 GiB (to allow more, raise ceilings.memory)"
        ]
    );
    let config = load("[ceilings]\nhandles = 99_999_999", &[], Flags::default()).unwrap();
    let most = Limits::UTMOST.handles;
    assert_eq!(
        config.clamp_messages(),
        [format!(
            "ceilings.handles = 99999999 was lowered to {most}, the maximum that this server can allow"
        )]
    );
}
