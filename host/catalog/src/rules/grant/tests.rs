//! Tests of `grant`.

use toolbay_policy::{MountPermission, MountScope, ScratchPermission};

use super::*;

fn parse(text: &str) -> Result<Grant, String> {
    Grant::parse("acme.toml", text, Path::new("/plugins"))
}

#[test]
fn every_key_of_a_grant_is_read() {
    let grant = parse(
        r#"
            prefix = "acme"
            require_approval = "destructive"
            [limits]
            fuel = 1_000
            [permissions]
            environment = ["LANG"]
            [[permissions.mounts]]
            host = "data"
            guest = "/data"
            access = "read"
            [config]
            units = "metric"
            depth = 3
            [tools.erase]
            require_approval = "always"
            [tools.look]
            title = "Look"
            "#,
    )
    .unwrap();
    assert_eq!(grant.prefix.as_deref(), Some("acme"));
    assert_eq!(grant.limits.fuel, Some(1000));
    let mount = &grant.permissions.mounts[0];
    assert_eq!(
        (mount.host.as_path(), mount.host_as_written.as_path()),
        (Path::new("/plugins/data"), Path::new("data"))
    );
    assert_eq!(mount.source_location, "acme.toml:9");
    let config = grant.config_values();
    assert_eq!(config["units"], "metric");
    assert_eq!(config["depth"], "3");
    let approvals = grant.approvals(ApprovalSetting::First, Approver::Client);
    assert_eq!(
        (
            approvals.setting_for("erase"),
            approvals.setting_for("look")
        ),
        (ApprovalSetting::Always, ApprovalSetting::Destructive)
    );
    assert_eq!(
        Grant {
            require_approval: None,
            ..grant
        }
        .approvals(ApprovalSetting::First, Approver::Client)
        .setting_for("look"),
        ApprovalSetting::First
    );
}

#[test]
fn values_that_json_does_not_have_become_strings() {
    let grant =
        parse("[config]\nday = 1979-05-27\nlist = [1979-05-27T07:32:00Z, inf, 1.5]").unwrap();
    let config = grant.config_values();
    assert_eq!(config["day"], "1979-05-27");
    assert_eq!(config["list"], r#"["1979-05-27T07:32:00Z","inf",1.5]"#);
}

#[test]
fn an_empty_file_grants_nothing() {
    let digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let grant = parse("").unwrap();
    assert_eq!(grant.digest.unwrap().to_string(), digest);
    assert_eq!(
        Grant {
            digest: None,
            text: None,
            ..grant
        },
        Grant::default()
    );
}

#[test]
fn mistakes_say_what_was_expected() {
    let long = format!("prefix = {:?}", "x".repeat(65));
    let texts = [
        "prefix = \"a b\"",
        "prefix = \"\"",
        "\nprefix = \".a\"",
        "prefix = \"a.\"",
        &long,
        "[permission]",
        "limits = 3",
        "[rate_limit]\ncalls = 1\nper = \"600years\"",
        "[[permissions.mounts]]\nhost = \"x\"\nguest = \"../x\"\naccess = \"read\"",
        "[[permissions.mounts]]\nhost = \"x\"\nguest = \"/x\"\naccess = \"read\"\n\
             [[permissions.mounts]]\nhost = \"y\"\nguest = \"/x/\"\naccess = \"read\"",
        "[permissions]\nenvironment = [\"A=B\"]",
        "[permissions]\nenvironment = [\"LANG\", \"*\"]",
        "[permissions]\nenvironment = [\"LC_*\"]",
        "[permissions]\nenvironment = [\"\"]",
        "[permissions]\nenvironment = [\"A\\u0000\"]",
        "[limits]\nconcurrency = 0",
        "[limits]\ntimeout = \"0s\"",
        "[tools.a.limits]\noutput = \"0B\"",
        "require_approval = \"allways\"",
        "require_approval = true",
        "require_aproval = \"always\"",
        "[tools.a]\nrequire_approval = \"yes\"",
        "[tools.a]\nrequire_aproval = \"first\"",
    ];
    let said: Vec<String> = texts.iter().map(|text| parse(text).unwrap_err()).collect();
    insta::assert_snapshot!(said.join("\n"), @r#"
        acme.toml:1:10: prefix: "a b" must have 1 to 64 characters of A-Z a-z 0-9 _ - .
        acme.toml:1:10: prefix: "" must have 1 to 64 characters of A-Z a-z 0-9 _ - .
        acme.toml:2:10: prefix: ".a" must not begin or end with a dot; Toolbay adds the separator before the tool's name
        acme.toml:1:10: prefix: "a." must not begin or end with a dot; Toolbay adds the separator before the tool's name
        acme.toml:1:10: prefix: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" must have 1 to 64 characters of A-Z a-z 0-9 _ - .
        acme.toml:1:2: unknown key `permission`; did you mean `permissions`?
        acme.toml:1:10: limits: expected a table, not 3
        acme.toml:3:7: rate_limit.per: expected a duration of at most 1 year, not "600years"
        acme.toml:3:9: permissions.mounts[0].guest: "../x" must be an absolute path without `..`, such as "/data"
        acme.toml:1:1: permissions.mounts: mounts[0] and mounts[1] have the same guest path "/x/"; each mount needs its own
        acme.toml:2:15: permissions.environment: "A=B" is not the name of an environment variable
        acme.toml:2:15: permissions.environment: "*" is not the name of an environment variable; patterns are not supported, so list each variable
        acme.toml:2:15: permissions.environment: "LC_*" is not the name of an environment variable; patterns are not supported, so list each variable
        acme.toml:2:15: permissions.environment: "" is not the name of an environment variable
        acme.toml:2:15: permissions.environment: "A\0" is not the name of an environment variable
        acme.toml:2:15: limits.concurrency: expected an integer of at least 1, not 0
        acme.toml:2:11: limits.timeout: expected a duration above 0, such as "30s", not "0s"
        acme.toml:2:10: tools.a.limits.output: expected a size above 0, such as "64MiB", not "0B"
        acme.toml:1:20: require_approval: expected "always", "first", "destructive" or "never", not "allways"; did you mean "always"?
        acme.toml:1:20: require_approval: expected a string in quotes, not true
        acme.toml:1:1: unknown key `require_aproval`; did you mean `require_approval`?
        acme.toml:2:20: tools.a.require_approval: expected "always", "first", "destructive" or "never", not "yes"
        acme.toml:2:1: unknown key `require_aproval`; did you mean `require_approval`?
        "#);
}

#[test]
fn every_mistake_names_its_line_and_its_key() {
    let texts = [
        "\n\n[limits]\nfuel = \"much\"",
        "limits = 3",
        "[permissions]\nenvironment = \"LANG\"",
        "[permissions]\nenvironment = [\"A\", 7]",
        "prefix = true",
        "\n[rate_limit]\ncalls = 3",
        "rate_limit = { calls = 3 }",
        "\n[rate_limit]\ncalls = 3\nper = \"soon\"",
        "\n[rate_limit]\ncalls = 0\nper = \"1m\"",
        "\n[[permissions.mounts]]\nhost = \"a\"\nguest = \"/a\"",
        "[[permissions.mounts]]\nhost = \"a\"\nguest = \"/a\"\naccess = \"read-write\"\nqouta = \"1MiB\"",
        "[[permissions.mounts]]\nhost = \"a\"\nguest = \"/a\"\naccess = \"read-write\"\nquota = \"much\"",
        "[[permissions.mounts]]\nhost = \"a\"\nguest = \"/a\"\naccess = \"read-write\"\nquota = 0",
        "[[permissions.mounts]]\nhost = \"a\"\nguest = \"/a\"\naccess = \"read\"\nquota = \"1MiB\"",
        "[[permissions.mounts]]\nhost = \"a\"\nguest = \"/a\"\naccess = \"read-write\"\nentires = 9",
        "[[permissions.mounts]]\nhost = \"a\"\nguest = \"/a\"\naccess = \"read-write\"\nentries = 1_000_001",
        "[[permissions.mounts]]\nhost = \"a\"\nguest = \"/a\"\naccess = \"read\"\nscope = \"user\"",
        "[permissions.scrtach]",
        "[permissions.scratch]\nsise = \"1MiB\"",
        "[permissions.scratch]\nsize = 0",
        "[permissions.scratch]\nguest = \"tmp\"",
        "[permissions.scratch]\nentry = 1",
        "[permissions.scratch]\nentries = 0",
        "[[permissions.mounts]]\nhost = 1\nguest = \"/a\"\naccess = \"write\"",
        "[[permissions.mounts]]\nhost = \"a\"\nguest = \"/a\"\naccess = \"write\"",
        "[tools.a.limits]\nmemory = 1",
        "[limits",
        "prefix \"a\"",
    ];
    let said: Vec<String> = texts
        .iter()
        .map(|text| toml_file::parse::<Grant>("a.toml", text).unwrap_err())
        .collect();
    insta::assert_snapshot!(said.join("\n"), @r#"
        a.toml:4:8: limits.fuel: expected an integer of at least 1, not "much"
        a.toml:1:10: limits: expected a table, not 3
        a.toml:2:15: permissions.environment: expected a list, not "LANG"
        a.toml:2:21: permissions.environment[1]: expected a string in quotes, not 7
        a.toml:1:10: prefix: expected a string in quotes, not true
        a.toml:2:1: rate_limit: the key `per` is missing
        a.toml:1:14: rate_limit: the key `per` is missing
        a.toml:4:7: rate_limit.per: expected a duration above 0, such as "30s", not "soon"
        a.toml:3:9: rate_limit.calls: expected an integer of at least 1, not 0
        a.toml:2:1: permissions.mounts[0]: the key `access` is missing
        a.toml:5:1: unknown key `qouta`; did you mean `quota`?
        a.toml:5:9: permissions.mounts[0].quota: expected a size above 0, such as "64MiB", not "much"
        a.toml:5:9: permissions.mounts[0].quota: expected a size above 0, such as "64MiB", not 0
        a.toml:1:1: permissions.mounts: mounts[0] has quota, which needs access = "read-write"; remove quota
        a.toml:5:1: unknown key `entires`; did you mean `entries`?
        a.toml:5:11: permissions.mounts[0].entries: expected at most 1000000, not 1000001
        a.toml:5:9: permissions.mounts[0].scope: expected "caller", not "user"
        a.toml:1:14: unknown key `scrtach`; did you mean `scratch`?
        a.toml:2:1: unknown key `sise`; did you mean `size`?
        a.toml:2:8: permissions.scratch.size: expected a size above 0, such as "64MiB", not 0
        a.toml:2:9: permissions.scratch.guest: "tmp" must be an absolute path without `..`, such as "/data"
        a.toml:2:1: unknown key `entry`; did you mean `entries`?
        a.toml:2:11: permissions.scratch.entries: expected an integer of at least 1, not 0
        a.toml:4:10: permissions.mounts[0].access: expected "read" or "read-write", not "write"
        a.toml:4:10: permissions.mounts[0].access: expected "read" or "read-write", not "write"
        a.toml:2:1: unknown key `memory`; valid keys are fuel, timeout, output, oversize
        a.toml:1:8: unclosed table, expected `]`
        a.toml:1:8: key with no value, expected `=`
        "#);
}

#[test]
fn folders_have_bounds_only_if_the_grant_says_so() {
    let mount = "[[permissions.mounts]]\nhost = \"a\"\nguest = \"/a\"\naccess = \"read-write\"\n";
    let parsed = |more: &str| parse(&format!("{mount}{more}")).unwrap().permissions;
    let without = parsed("");
    let MountPermission { scope, quota, .. } = &without.mounts[0];
    assert_eq!(
        (
            scope,
            quota,
            without.mounts[0].max_entries(),
            without.scratch
        ),
        (&None, &None, None, None)
    );
    let with = parsed("scope = \"caller\"\nquota = \"1MiB\"\nentries = 7\n[permissions.scratch]");
    let MountPermission { scope, quota, .. } = &with.mounts[0];
    assert_eq!(
        (scope, quota),
        (&Some(MountScope::Caller), &Some(ByteSize::mib(1)))
    );
    assert_eq!(with.mounts[0].max_entries(), Some(7));
    assert_eq!(
        with.scratch,
        Some(ScratchPermission {
            guest: "/tmp".to_owned(),
            size: ByteSize::mib(64),
            entries: 1000
        })
    );
    assert_eq!(
        parsed("quota = \"1MiB\"").mounts[0].max_entries(),
        Some(10_000)
    );
    let scratch =
        parsed("[permissions.scratch]\nguest = \"/s\"\nsize = \"1KiB\"\nentries = 2").scratch;
    assert_eq!(
        scratch,
        Some(ScratchPermission {
            guest: "/s".to_owned(),
            size: ByteSize::kib(1),
            entries: 2
        })
    );
    let why = parse(&format!("{mount}[permissions.scratch]\nguest = \"/a/\"")).unwrap_err();
    let expected = "acme.toml: permissions.scratch.guest: permissions.mounts[0] has the guest path \"/a/\" as well; \
            each folder needs its own";
    assert_eq!(why, expected);
}

#[test]
fn a_suggested_prefix_is_valid() {
    let long = "ü".repeat(100);
    let cases = [
        ("acme", "acme"),
        ("two words", "two_words"),
        (".x.", "x"),
        ("..", "other"),
        ("a+b", "a_b"),
        (&long, &"_".repeat(64)),
    ];
    for (id, expected) in cases {
        let prefix = suggest_prefix(id);
        assert_eq!(prefix, expected);
        assert_eq!(
            parse(&format!("prefix = {prefix:?}")).unwrap().prefix,
            Some(prefix)
        );
    }
}
