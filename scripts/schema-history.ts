import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { breakingChanges, changelogSince, newestVersion, unnamedChanges } from './breaking-changes.ts';

const SCHEMA = 'schema/schema.graphql';
const CHANGELOG = 'CHANGELOG.md';

/** The differences between the schema of a working tree and the committed schemas. */
export interface SchemaHistory {
  /** The commits that it was compared with; none in a clone of a single commit. */
  compared: string[];
  /** Every breaking change that the changelog does not name since then, for people. */
  faults: string[];
}

/**
 * Compares the GraphQL schema of a repository with the commit before, with the last release, and, where it is changed
 * and not committed yet, with the last commit.
 */
export function schemaHistory(root: string): SchemaHistory {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: 'pipe' });
  const schema = readFileSync(join(root, SCHEMA), 'utf8');
  const changelog = readFileSync(join(root, CHANGELOG), 'utf8');
  const shown = (commit: string, path: string) => {
    try {
      return git('show', `${commit}:${path}`);
    } catch {
      // The commit has no such file.
      return undefined;
    }
  };
  const head = git('rev-parse', 'HEAD').trim();
  const [parent] = git('rev-list', '--max-count=1', '--parents', 'HEAD').trim().split(' ').slice(1);
  const released = releaseCommit(git, changelog);
  const isCommitted = shown(head, SCHEMA) === schema;
  const commits = [isCommitted ? undefined : head, parent, released === head ? undefined : released];
  const compared: string[] = [];
  const faults = new Set<string>();
  for (const commit of new Set(commits)) {
    const before = commit === undefined ? undefined : shown(commit, SCHEMA);
    if (commit === undefined || before === undefined) continue;
    compared.push(commit);
    const said = changelogSince(changelog, shown(commit, CHANGELOG) ?? '');
    for (const { coordinate, description } of unnamedChanges(breakingChanges(before, schema), said)) {
      faults.add(`${coordinate}: ${description} ${CHANGELOG} does not name it since ${commit.slice(0, 12)}.`);
    }
  }
  return { compared, faults: [...faults] };
}

/** The commit that added the newest version to the changelog. */
function releaseCommit(git: (...args: string[]) => string, changelog: string): string | undefined {
  const version = newestVersion(changelog);
  if (version === undefined) return undefined;
  return git('log', '--format=%H', `-S## [${version}]`, '--', CHANGELOG).trim().split('\n').at(-1) || undefined;
}
