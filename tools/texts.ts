import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseAst } from 'vitest/node';
import { parse } from 'yaml';

const ROOT = resolve(import.meta.dirname, '..');

interface Node {
  type: string;
  start: number;
  [member: string]: unknown;
}

/** A text that a person can read, and where it is. */
interface Text {
  file: string;
  line: number;
  /** What it belongs to: the property, the function or the class that takes it. */
  context: string;
  text: string;
}

/**
 * `npx node tools/texts.ts [CONTEXT…]`: prints every text of at least three words in `src`, `console`, `client`, the
 * alerts and the headings of pages, as tab-separated lines; with arguments, only texts of these contexts. SQL and imports
 * are left out.
 */
function main(contexts: readonly string[]): void {
  const texts = [...sourceTexts(), ...alertTexts(), ...headings()].filter(
    ({ context }) => contexts.length === 0 || contexts.includes(context),
  );
  for (const { file, line, context, text } of texts) {
    process.stdout.write(`${context}\t${file}:${line}\t${text.replace(/\s+/g, ' ').trim()}\n`);
  }
}

function sourceTexts(): Text[] {
  return globSync(['src/**/*.ts', 'console/**/*.ts', 'client/src/*.ts', 'scripts/asyncapi.ts'], { cwd: ROOT })
    .sort()
    .flatMap((file) => {
      const source = readFileSync(join(ROOT, file), 'utf8');
      const found: Text[] = [];
      visit(parseAst(source, { lang: 'ts' }) as unknown as Node, 'statement', (node, context) => {
        const text = textOf(node);
        if (!isSentence(text)) return;
        found.push({ file, line: source.slice(0, node.start).split('\n').length, context, text });
      });
      return found;
    });
}

/** Calls `use` for each node with the name of what it is an argument or a value of. */
function visit(node: Node, context: string, use: (node: Node, context: string) => void): void {
  use(node, context);
  const inside = contextOf(node) ?? context;
  if (inside === 'sql' || node.type === 'ImportDeclaration') return;
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (typeof child === 'object' && child !== null && 'type' in child) visit(child as Node, inside, use);
    }
  }
}

function contextOf(node: Node): string | undefined {
  if (node.type === 'CallExpression' || node.type === 'NewExpression') return nameOf(node.callee as Node);
  if (node.type === 'TaggedTemplateExpression') return nameOf(node.tag as Node);
  if (node.type === 'Property') return nameOf(node.key as Node);
  if (node.type === 'VariableDeclarator') return nameOf(node.id as Node);
  return undefined;
}

function nameOf(node: Node): string | undefined {
  if (node.type === 'Identifier') return String(node.name);
  if (node.type === 'MemberExpression') return nameOf(node.property as Node);
  return undefined;
}

function textOf(node: Node): string {
  if (node.type === 'Literal' && typeof node.value === 'string') return node.value;
  if (node.type !== 'TemplateLiteral') return '';
  const quasis = node.quasis as { value: { cooked?: string } }[];
  return quasis.map(({ value }) => value.cooked ?? '').join('…');
}

function isSentence(text: string): boolean {
  return (
    /\p{L}+[ ,…:'"]+\p{L}+.*[ ,…]\p{L}+/u.test(text) &&
    !/^\s*(?:select|insert|update|delete|with|create|alter)\b/i.test(text)
  );
}

function alertTexts(): Text[] {
  const file = 'deploy/prometheus/alerts.yaml';
  const { groups } = parse(readFileSync(join(ROOT, file), 'utf8')) as {
    groups: { rules: { alert: string; annotations?: Record<string, string> }[] }[];
  };
  return groups
    .flatMap(({ rules }) => rules)
    .flatMap(({ annotations = {} }) =>
      Object.entries(annotations).map(([name, text]) => ({ file, line: 0, context: `alert.${name}`, text })),
    );
}

function headings(): Text[] {
  return globSync(['*.md', 'docs/**/*.md'], { cwd: ROOT })
    .sort()
    .flatMap((file) =>
      readFileSync(join(ROOT, file), 'utf8')
        .split('\n')
        .flatMap((text, at) => (/^#+ /.test(text) ? [{ file, line: at + 1, context: 'heading', text }] : [])),
    );
}

main(process.argv.slice(2));
