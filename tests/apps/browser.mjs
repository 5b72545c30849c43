// A headless Chromium from a package, which needs only the C library of the system.

import { execFileSync } from 'node:child_process';
import { chmodSync, createReadStream, createWriteStream, existsSync, mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { createBrotliDecompress } from 'node:zlib';

import { chromium } from 'playwright-core';

const packed = fileURLToPath(new URL('node_modules/@sparticuz/chromium/bin', import.meta.url));
const folder = fileURLToPath(new URL('chromium', import.meta.url));

/** Unpacks a file, unless it exists. */
async function unpacked(name, to) {
  const path = join(folder, to);
  if (!existsSync(path)) {
    const partial = `${path}.${process.pid}`;
    await pipeline(createReadStream(join(packed, name)), createBrotliDecompress(), createWriteStream(partial));
    renameSync(partial, path);
  }
  return path;
}

export async function launch() {
  mkdirSync(folder, { recursive: true });
  const executablePath = await unpacked('chromium.br', 'chromium');
  chmodSync(executablePath, 0o755);
  const libraries = await unpacked('al2023.tar.br', 'al2023.tar');
  execFileSync('tar', ['--extract', '--file', libraries, '--directory', folder]);
  return chromium.launch({
    executablePath,
    // Containers have no user namespaces. The pages here are trusted.
    args: ['--no-sandbox'],
    env: { ...process.env, LD_LIBRARY_PATH: join(folder, 'lib') },
  });
}
