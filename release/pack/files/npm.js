#!/usr/bin/env node
// Runs the mailtree program for this platform, which is in a package of its own.
"use strict";
const { spawn } = require("node:child_process");

const name = `{{.Package}}-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/mailtree`);
} catch {
  if (process.platform === "win32") {
    console.error("mailtree: there is no mailtree for Windows. Use WSL 2, and install mailtree there.");
  } else {
    console.error(`mailtree: the package ${name} is not installed. If your platform is supported, install again with optional dependencies:`);
    console.error("  npm install -g --include=optional {{.Package}}");
  }
  process.exit(1);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
process.on("SIGINT", () => {}); // the terminal sends it to the program too
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (err) => {
  console.error(`mailtree: cannot run ${program}: ${err.message}`);
  process.exit(1);
});
child.on("exit", (status, signal) => {
  if (signal === null) process.exit(status);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
