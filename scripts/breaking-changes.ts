import { BreakingChangeType, buildSchema, findSchemaChanges } from 'graphql';

/** A change that can break an operation which was valid before it. */
export interface BreakingChange {
  /**
   * Its schema coordinate: `Account`, `Account.name`, `Query.account(id:)`, `ClientStatus.ACTIVE`; a member of a union
   * and an interface of a type are reported as `Union.Member` and `Type.Interface`.
   */
  coordinate: string;
  description: string;
}

const BREAKING: ReadonlySet<string> = new Set(Object.values(BreakingChangeType));
const OF_UNION = /^(\w+) was removed from union type (\w+)\.$/;
const OF_INTERFACE = /^(\w+) no longer implements interface (\w+)\.$/;
const MEMBER = /@\w+(?:\(\w+:\))?|\w+\.\w+(?:\(\w+:\))?/;
const TYPE = /^(?:Standard scalar )?(\w+)/;

/** What can break from one schema to another, both in the schema definition language. Additions are not among it. */
export function breakingChanges(before: string, after: string): BreakingChange[] {
  return findSchemaChanges(buildSchema(before), buildSchema(after))
    .filter(({ type }) => BREAKING.has(type))
    .map(({ description }) => ({ coordinate: coordinateIn(description), description }));
}

/** Those that a text does not name. A longer coordinate names no shorter one, nor the other way round. */
export function unnamedChanges(changes: readonly BreakingChange[], text: string): BreakingChange[] {
  return changes.filter(({ coordinate }) => {
    const literal = coordinate.replaceAll(/[^\w@]/g, '\\$&');
    return !new RegExp(`(?<![\\w.@])${literal}(?![\\w(]|\\.\\w)`).test(text);
  });
}

/** What a changelog says beyond the newest version of an older one: `[Unreleased]`, and versions since. */
export function changelogSince(now: string, then: string): string {
  const version = newestVersion(then);
  const end = version === undefined ? -1 : now.indexOf(`\n## [${version}]`);
  const start = now.indexOf('\n## [');
  return start < 0 ? '' : now.slice(start, end < 0 ? undefined : end);
}

/** The newest version that a changelog names; undefined where it names none. */
export function newestVersion(changelog: string): string | undefined {
  return /^## \[(\d[^\]]*)\]/m.exec(changelog)?.[1];
}

function coordinateIn(description: string): string {
  const [, member, union] = OF_UNION.exec(description) ?? [];
  if (member && union) return `${union}.${member}`;
  const [, type, implemented] = OF_INTERFACE.exec(description) ?? [];
  if (type && implemented) return `${type}.${implemented}`;
  return MEMBER.exec(description)?.[0] ?? TYPE.exec(description)?.[1] ?? description;
}
