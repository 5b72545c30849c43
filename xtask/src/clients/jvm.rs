//! Clients that use `LangChain4j` and the official Kotlin SDK, from Maven Central.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anstream::println;
use anyhow::{Context, Result};
use toolbay_testkit::command;
use toolbay_testkit::guests::run_once;

use super::folders::ClientFolders;
use super::java;
use super::script::{ClientScript, EACH_TRANSPORT};

/// The source file that all clients on the JVM share.
const HARNESS_SOURCE: &str = "Harness.java";

/// The main class of the Kotlin compiler, which is one of the packages.
const KOTLIN_COMPILER: &str = "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler";

/// A client on the JVM.
pub(super) struct JvmClient {
    pub(super) name: &'static str,
    /// The Maven project file that lists the packages.
    project: &'static str,
    /// The source file of the client.
    source: &'static str,
    /// The class that contains `main_class`.
    main_class: &'static str,
}

/// The clients on the JVM.
pub(super) const CLIENTS: [JvmClient; 2] = [
    JvmClient {
        name: "langchain4j-mcp",
        project: "langchain4j.xml",
        source: "LangChain4j.java",
        main_class: "LangChain4j",
    },
    JvmClient {
        name: "kotlin-sdk",
        project: "kotlin.xml",
        source: "Kotlin.kt",
        main_class: "KotlinKt",
    },
];

impl JvmClient {
    /// Builds the client. On a machine without a JDK or Maven, prints that it is skipped and
    /// returns `None`.
    pub(super) fn install(&self, folders: &ClientFolders) -> Result<Option<ClientScript>> {
        if !java::is_java_installed() {
            println!(
                "{} is skipped: there is no JDK or no Maven on this machine ({})",
                self.name,
                java::JAVA_ADVICE
            );
            return Ok(None);
        }
        let source = folders.source.join("frameworks/jvm");
        let installed = folders.installed.join(self.name);
        let packages = installed.join("packages");
        let classes = installed.join("classes");
        fs::create_dir_all(&classes)
            .with_context(|| format!("failed to create {}", classes.display()))?;
        let inputs = folders.read(&format!("frameworks/jvm/{}", self.project))?;
        run_once(&installed.join(".toolbay-stamp"), &inputs, || {
            println!("Installing {}", self.name);
            let mut maven = Command::new("mvn");
            maven
                .args(["--quiet", "--batch-mode", "--file"])
                .arg(source.join(self.project));
            maven
                .arg("dependency:copy-dependencies")
                .arg(format!("-DoutputDirectory={}", packages.display()));
            command::run(&mut maven)
                .with_context(|| format!("failed to install {}; {}", self.name, java::JAVA_ADVICE))
        })?;
        let everything = packages.join("*");
        let mut javac = Command::new("javac");
        javac
            .args(["-nowarn", "-d"])
            .arg(&classes)
            .arg("-cp")
            .arg(&everything)
            .arg(source.join(HARNESS_SOURCE));
        let is_kotlin = Path::new(self.source)
            .extension()
            .is_some_and(|extension| extension == "kt");
        if !is_kotlin {
            javac.arg(source.join(self.source));
        }
        command::run(&mut javac)
            .with_context(|| format!("failed to compile {}; {}", self.name, java::JAVA_ADVICE))?;
        if is_kotlin {
            let mut compiler = Command::new("java");
            compiler
                .arg("-cp")
                .arg(&everything)
                .arg(KOTLIN_COMPILER)
                .args(["-no-stdlib", "-no-reflect", "-nowarn", "-d"]);
            compiler
                .arg(&classes)
                .arg("-classpath")
                .arg(join_class_path(
                    std::iter::once(classes.clone()).chain(list_jars(&packages)?),
                ));
            compiler.arg(source.join(self.source));
            command::run(&mut compiler)
                .with_context(|| format!("failed to compile {}", self.name))?;
        }
        let path = join_class_path([classes, everything]);
        let args = vec!["-cp".into(), path, self.main_class.into()];
        Ok(Some(ClientScript {
            client: self.name,
            program: "java".into(),
            args,
            conversations: EACH_TRANSPORT,
        }))
    }
}

/// Returns the files of the packages. The Kotlin compiler does not support `*` in class paths.
fn list_jars(packages: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(packages).with_context(|| format!("failed to read {}", packages.display()))?;
    let mut jars: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    jars.sort();
    Ok(jars)
}

/// Joins paths to a class path.
fn join_class_path(parts: impl IntoIterator<Item = PathBuf>) -> OsString {
    let mut path = OsString::new();
    for part in parts {
        if !path.is_empty() {
            path.push(":");
        }
        path.push(part);
    }
    path
}
