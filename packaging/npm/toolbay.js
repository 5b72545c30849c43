#!/usr/bin/env node
// Starts the program that npm installed for this machine, with the same input and output, the same signals, and the
// same exit code. Nothing is downloaded.
"use strict";

const { spawn } = require("node:child_process");

const PACKAGES = { "linux x64": "@toolbay/linux-x64", "linux arm64": "@toolbay/linux-arm64" };

function fail(why) {
  console.error(`toolbay: ${why}`);
  process.exit(1);
}

function program() {
  const platform = `${process.platform} ${process.arch}`;
  const name = PACKAGES[platform];
  if (name === undefined) {
    fail(
      process.platform === "linux"
        ? `there is no package for ${platform}; build it from source`
        : `it runs on Linux only, not on ${process.platform}: use a Linux container, or WSL 2 on Windows`,
    );
  }
  try {
    return require.resolve(`${name}/bin/toolbay`);
  } catch {
    fail(`the package ${name} is not installed; install again without --omit=optional`);
  }
}

const child = spawn(program(), process.argv.slice(2), { stdio: "inherit" });

// At a terminal, the program receives Ctrl-C directly. A second signal would end its calls immediately.
const hasTerminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR2"]) {
  process.on(signal, () => {
    if (signal !== "SIGINT" || !hasTerminal) {
      child.kill(signal);
    }
  });
}

child.on("error", (error) => fail(`failed to start: ${error.message}`));
child.on("exit", (code, signal) => {
  if (signal === null) {
    process.exit(code);
  }
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
