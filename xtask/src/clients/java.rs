//! A client that uses the official Java SDK, from Maven Central.

use std::fs;
use std::process::Command;

use anstream::println;
use anyhow::{Context, Result};
use toolbay_testkit::command;
use toolbay_testkit::guests::run_once;

use super::conversation::SESSIONS_AND_SSE;
use super::folders::ClientFolders;
use super::script::ClientScript;

/// Advice for the user if Java is missing or too old.
pub(super) const JAVA_ADVICE: &str = "install a JDK 17 or newer, with Maven";

/// Returns whether this machine has a JDK and Maven.
pub(super) fn is_java_installed() -> bool {
    ["javac", "mvn"]
        .iter()
        .all(|program| Command::new(program).arg("--version").output().is_ok())
}

/// Builds the client. On a machine without a JDK or Maven, prints that it is skipped and returns
/// none.
pub(super) fn install(folders: &ClientFolders) -> Result<Vec<ClientScript>> {
    if !is_java_installed() {
        println!(
            "The Java client is skipped: there is no JDK or no Maven on this machine ({JAVA_ADVICE})"
        );
        return Ok(Vec::new());
    }
    let source = folders.source.join("java");
    let installed = folders.installed.join("java");
    let packages = installed.join("packages");
    let classes = installed.join("classes");
    fs::create_dir_all(&installed)
        .with_context(|| format!("failed to create {}", installed.display()))?;
    let inputs = folders.read("java/pom.xml")?;
    run_once(&installed.join(".toolbay-stamp"), &inputs, || {
        println!("Installing the official Java SDK");
        let mut maven = Command::new("mvn");
        maven
            .args(["--quiet", "--batch-mode", "--file"])
            .arg(source.join("pom.xml"));
        maven
            .arg("dependency:copy-dependencies")
            .arg(format!("-DoutputDirectory={}", packages.display()));
        command::run(&mut maven)
            .with_context(|| format!("failed to install the Java SDK; {JAVA_ADVICE}"))
    })?;
    let everything = packages.join("*");
    let mut compiler = Command::new("javac");
    compiler
        .args(["-nowarn", "-d"])
        .arg(&classes)
        .arg("-cp")
        .arg(&everything)
        .arg(source.join("Client.java"));
    command::run(&mut compiler)
        .with_context(|| format!("failed to compile the Java client; {JAVA_ADVICE}"))?;
    let mut path = classes.into_os_string();
    path.push(":");
    path.push(everything);
    Ok(vec![ClientScript {
        client: "The official Java SDK",
        program: "java".into(),
        args: vec!["-cp".into(), path, "Client".into()],
        conversations: SESSIONS_AND_SSE,
    }])
}
