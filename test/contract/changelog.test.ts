import { expect, it } from 'vitest';
import { manifest, read } from '../support/deploy/files.ts';

/** What is wrong with the version of a package, by the changelog beside it; undefined where nothing is. */
function versionFault(version: string, changelog: string): string | undefined {
  const [head = ''] = changelog.split(/^## \[\d/m);
  const [, last = ''] = /^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d{2}-\d{2}$/m.exec(changelog) ?? [];
  const [, unreleased = ''] = head.split('## [Unreleased]');
  const [, next] = /^(\d+\.\d+\.\d+)-dev$/.exec(version) ?? [];
  if (version === last) return unreleased.trim() === '' ? undefined : `${version} is released, and has other changes`;
  if (next === undefined) return `the changelog has no release ${version}, so it must end in -dev`;
  return next.localeCompare(last, 'en', { numeric: true }) > 0 ? undefined : `${version} is older than release ${last}`;
}

it('the package has a release version only if CHANGELOG.md lists no later change', () => {
  expect(versionFault(manifest.version, read('CHANGELOG.md'))).toBeUndefined();
});

it.each([
  ['0.9.0', '', undefined],
  ['0.9.0', '- A change.', '0.9.0 is released, and has other changes'],
  ['0.10.0-dev', '- A change.', undefined],
  ['0.10.0-dev', '', undefined],
  ['0.9.0-dev', '- A change.', '0.9.0-dev is older than release 0.9.0'],
  ['0.8.1-dev', '', '0.8.1-dev is older than release 0.9.0'],
  ['0.10.0', '- A change.', 'the changelog has no release 0.10.0, so it must end in -dev'],
])('version %s, after release 0.9.0 and changes "%s": %s', (version, changes, fault) => {
  const changelog = `# Changelog\n\n## [Unreleased]\n\n${changes}\n\n## [0.9.0] - 2026-11-22\n\n- First.\n`;
  expect(versionFault(version, changelog)).toBe(fault);
});

it.each(['client/package.json', 'console/package.json', 'tools/package.json'])(
  '%s has the version of the package',
  (path) => {
    expect(JSON.parse(read(path)).version).toBe(manifest.version);
  },
);
