import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAst } from 'vitest/node';

/** One row of docs/contract.md. `files` are test files from the repository's root; `remark` says what they leave open. */
export type Clause = {
  readonly id: string;
  readonly section: string;
  readonly guarantee: string;
  readonly files: readonly string[];
  readonly remark: string | undefined;
};

/** The page as read: what its head promises, what its sections hold, and the lines that follow no known form. */
export type ContractPage = {
  readonly total: number | undefined;
  readonly counts: ReadonlyMap<string, number>;
  readonly clauses: readonly Clause[];
  readonly malformed: readonly string[];
};

/** Text of test files by their path from the repository's root. */
export type TestFiles = ReadonlyMap<string, string>;

type Node = Readonly<Record<string, unknown>> & { readonly type: string };

const id = String.raw`(?<![\w.-])(?:DG|D?\d(?:\.\d)?)-\d{2}(?![\w-]|\.\d)`;
const anyId = new RegExp(id, 'g');
const leadingIds = new RegExp(`^(?:\\s*(?:[,;/+&]|and\\b)?\\s*${id})+`);
const row = new RegExp(`^\\| (${id}) \\| (.+) \\| ([^|]+) \\|$`);
const link = /^\[([^\]]+)\]\(\.\.\/([^)]+)\)$/;
const notYet = 'not yet';
/** Stands for a computed part of a name; a name that begins with it, as with `%s` or `$id`, takes its ids from a table. */
const computed = '%';

/**
 * The clause ids that a name claims. Ids such as `1-10` look like ranges, so they count only in the list that a name
 * begins with; `D6-02`, `DG-01` and `2.6-05` count anywhere.
 */
export function clauseIds(name: string): string[] {
  const leading = leadingIds.exec(name)?.[0] ?? '';
  const rest = name.slice(leading.length).match(anyId) ?? [];
  return [...(leading.match(anyId) ?? []), ...rest.filter((found) => /^D|\./.test(found))];
}

/** Parses a proof cell, `not yet` or a list of links, and after a semicolon a remark; undefined when it is neither. */
function parseProof(cell: string): Pick<Clause, 'files' | 'remark'> | undefined {
  const [proof = '', ...after] = cell.split(';');
  const remark = after.length === 0 ? undefined : after.join(';').trim();
  if (remark === '') return undefined;
  if (proof.trim() === notYet) return { files: [], remark };
  const links = proof.split(',').map((text) => link.exec(text.trim()));
  const files = links.flatMap((found) => (found?.[1] !== undefined && found[1] === found[2] ? [found[1]] : []));
  return files.length === links.length ? { files, remark } : undefined;
}

function renderProof(files: readonly string[], remark: string | undefined): string {
  const proof = files.length === 0 ? notYet : files.map((file) => `[${file}](../${file})`).join(', ');
  return remark === undefined ? proof : `${proof}; ${remark}`;
}

/** Reads docs/contract.md. It never throws: a table line of no known form is listed in `malformed`. */
export function parsePage(page: string): ContractPage {
  const counts = new Map<string, number>();
  const clauses: Clause[] = [];
  const malformed: string[] = [];
  let section: string | undefined;
  for (const line of page.split('\n')) {
    if (line.startsWith('## ')) section = line.slice(3).trim();
    if (!line.startsWith('|') || /^\| (?:id|section) \||^\|[-|]+$/.test(line)) continue;
    const [, name, count] = /^\| (.+) \| (\d+) \|$/.exec(line) ?? [];
    const [, clause, guarantee, cell] = row.exec(line) ?? [];
    const proof = cell === undefined ? undefined : parseProof(cell);
    if (section === undefined && name !== undefined) counts.set(name, Number(count));
    else if (section === undefined || clause === undefined || guarantee === undefined || !proof) malformed.push(line);
    else clauses.push({ id: clause, section, guarantee, ...proof });
  }
  const total = /\*\*(\d+) clauses\*\*/.exec(page)?.[1];
  return { total: total === undefined ? undefined : Number(total), counts, clauses, malformed };
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';
}

function childNodes(node: Node): Node[] {
  const found: Node[] = [];
  for (const name in node) {
    const child = node[name];
    if (isNode(child)) found.push(child);
    else if (Array.isArray(child)) for (const each of child) if (isNode(each)) found.push(each);
  }
  return found;
}

function nodeList(value: unknown): Node[] {
  return Array.isArray(value) ? value.filter(isNode) : [];
}

/** The text of a string as far as it is written out; undefined for other nodes. */
function writtenText(node: Node): string | undefined {
  if (node.type === 'Literal') return typeof node.value === 'string' ? node.value : undefined;
  if (node.type === 'BinaryExpression' && isNode(node.left)) return writtenText(node.left);
  if (node.type !== 'TemplateLiteral') return undefined;
  const parts = nodeList(node.quasis).map(({ value }) => value);
  return parts.map((part) => (part as { readonly raw: string }).raw).join(computed);
}

/** A call's callee taken apart: `it.skipIf(x).each(table)` is root `it`, members `each, skipIf`, passed `table, x`. */
function calleeChain(callee: unknown): { root: string; members: string[]; passed: Node[] } {
  const members: string[] = [];
  const passed: Node[] = [];
  let at = callee;
  while (isNode(at) && at.type !== 'Identifier') {
    if (at.type === 'MemberExpression' && isNode(at.property)) members.push(String(at.property.name));
    passed.push(...nodeList(at.arguments), ...(isNode(at.quasi) ? [at.quasi] : []));
    at = at.object ?? at.callee ?? at.tag;
  }
  return { root: isNode(at) ? String(at.name) : '', members, passed };
}

/** Ids that strings in a table begin with; a table held in a constant of the same file is followed. */
function tableIds(table: Node, constants: ReadonlyMap<string, Node>, seen = new Set<Node>()): string[] {
  if (seen.has(table)) return [];
  seen.add(table);
  const leading = leadingIds.exec(writtenText(table) ?? '')?.[0];
  const constant = table.type === 'Identifier' ? constants.get(String(table.name)) : undefined;
  const inside = [...childNodes(table), ...(constant ? [constant] : [])];
  return [...(leading?.match(anyId) ?? []), ...inside.flatMap((node) => tableIds(node, constants, seen))];
}

/** What a loop runs over: the right side of `for…of`, the receiver of `forEach`. */
function loopTables(node: Node, members: readonly string[]): Node[] {
  const callee = isNode(node.callee) ? node.callee : undefined;
  const over = node.type === 'ForOfStatement' ? node.right : members[0] === 'forEach' ? callee?.object : undefined;
  return isNode(over) ? [over] : [];
}

function collectConstants(node: Node, into = new Map<string, Node>()): Map<string, Node> {
  if (node.type === 'VariableDeclarator' && isNode(node.id) && isNode(node.init)) {
    into.set(String(node.id.name), node.init);
  }
  for (const child of childNodes(node)) collectConstants(child, into);
  return into;
}

/**
 * The clause ids named by a test file, each with the names that have it as they are written, `%` for a computed part: in
 * the names of `it`, `test` and `describe` (also `itX`, `testX`, `describeX`), or, for a name that begins with a placeholder, in the table it runs over (`each`, `for`, `for…of`, `forEach`).
 * What is skipped or still to be written names nothing. Throws on a file that does not parse.
 */
export function namedClauses(source: string, file = 'test.ts'): ReadonlyMap<string, readonly string[]> {
  const program = parseAst(source, { lang: 'ts' }, file) as unknown as Node;
  const constants = collectConstants(program);
  const named = new Map<string, string[]>();
  function visit(node: Node, outer: readonly Node[]): void {
    const { root, members, passed } = calleeChain(node.type === 'CallExpression' ? node.callee : undefined);
    const tables = [...outer, ...loopTables(node, members)];
    const [name, body] = nodeList(node.arguments);
    if (/^(?:it|test|describe)(?:[A-Z]|$)/.test(root) && name !== undefined && body !== undefined) {
      if (members.includes('skip') || members.includes('todo')) return;
      tables.push(...passed);
      const text = writtenText(name) ?? computed;
      const fromTables = /^[%$]/.test(text) ? tables.flatMap((table) => tableIds(table, constants)) : [];
      for (const found of new Set([...clauseIds(text), ...fromTables])) {
        named.set(found, [...(named.get(found) ?? []), text]);
      }
    }
    for (const child of childNodes(node)) visit(child, tables);
  }
  visit(program, []);
  return named;
}

/** Every test file under `root`, the repository's folder. */
export function readTests(root: string): TestFiles {
  const files = globSync('test/**/*.{test,contract}.ts', { cwd: root }).sort();
  return new Map(files.map((file) => [file, readFileSync(join(root, file), 'utf8')]));
}

const claimed = new WeakMap<TestFiles, Map<string, ReturnType<typeof namedClauses>>>();

function claims(tests: TestFiles): Map<string, ReturnType<typeof namedClauses>> {
  // A text without any id names none: it need not be parsed.
  const namedBy = (source: string, file: string) =>
    source.search(anyId) < 0 ? new Map<string, string[]>() : namedClauses(source, file);
  const found = claimed.get(tests) ?? new Map([...tests].map(([file, source]) => [file, namedBy(source, file)]));
  claimed.set(tests, found);
  return found;
}

function countFaults({ total, counts, clauses }: ContractPage): string[] {
  const held = Map.groupBy(clauses, ({ section }) => section);
  const sections = new Set([...counts.keys(), ...held.keys()]);
  const faults = [...sections].flatMap((section) => {
    const actual = held.get(section)?.length ?? 0;
    return counts.get(section) === actual
      ? []
      : [`${section}: ${actual} clauses, the head says ${counts.get(section)}`];
  });
  return total === clauses.length ? faults : [...faults, `${clauses.length} clauses in all, the head says ${total}`];
}

/** Everything in which the page and the tests disagree, one sentence each; empty when the page is true. */
export function disagreements(page: string, tests: TestFiles): string[] {
  const parsed = parsePage(page);
  const named = claims(tests);
  const clauses = Map.groupBy(parsed.clauses, (clause) => clause.id);
  const unknown = [...named].flatMap(([file, ids]) =>
    [...ids.keys()]
      .filter((found) => !clauses.has(found))
      .map((found) => `${file} names ${found}, which is not on the page`),
  );
  const unproved = parsed.clauses.flatMap((clause) => {
    const wrong = clause.files.flatMap((file) => {
      if (!named.has(file)) return [`${clause.id}: ${file} does not exist`];
      return named.get(file)?.has(clause.id) ? [] : [`${clause.id}: ${file} has no test that names it`];
    });
    const proving = [...named].filter(([, ids]) => ids.has(clause.id)).map(([file]) => file);
    const denied = clause.files.length === 0 && proving.length > 0;
    return denied ? [...wrong, `${clause.id} is "${notYet}", but ${proving.join(', ')} names it`] : wrong;
  });
  const twice = [...clauses]
    .filter(([, rows]) => rows.length > 1)
    .map(([found]) => `${found} stands on the page twice`);
  const malformed = parsed.malformed.map((line) => `not a row of the page's form: ${line}`);
  return [...malformed, ...countFaults(parsed), ...twice, ...unknown, ...unproved];
}

/** The page with its proof column filled from the tests; remarks, malformed rows and everything else stay as they are. */
export function syncPage(page: string, tests: TestFiles): string {
  const named = claims(tests);
  const lines = page.split('\n').map((line) => {
    const [, clause, guarantee, cell] = row.exec(line) ?? [];
    const proof = cell === undefined ? undefined : parseProof(cell);
    if (clause === undefined || proof === undefined) return line;
    const files = [...named].filter(([, ids]) => ids.has(clause)).map(([file]) => file);
    return `| ${clause} | ${guarantee} | ${renderProof(files.sort(), proof.remark)} |`;
  });
  return lines.join('\n');
}
