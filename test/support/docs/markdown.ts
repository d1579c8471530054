import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../start/process.ts';

/** A fenced block of a page. */
export interface Block {
  page: string;
  /** The line of its first line of text, from 1. */
  line: number;
  lang: string;
  /** What stands behind the language in the opening fence. */
  info: string;
  text: string;
  /** How many headings stand before it. */
  section: number;
}

interface Line {
  text: string;
  number: number;
  /** Whether it is a fence or stands between two. */
  isCode: boolean;
}

/** Every page of the repository: its paths from the root. */
export function allPages(): string[] {
  return globSync('**/*.md', {
    cwd: ROOT,
    exclude: (path) => /(^|\/)(node_modules|\.data|\.git)(\/|$)/.test(path),
  }).sort();
}

/** The fenced blocks of a page, in order. */
export function blocksOf(page: string): Block[] {
  const blocks: Block[] = [];
  let open: Block | undefined;
  let section = 0;
  for (const { text, number, isCode } of linesOf(page)) {
    if (!isCode && /^#+ /.test(text)) section += 1;
    const fence = /^ *```(?<lang>[\w-]*) *(?<info>.*)$/.exec(text)?.groups;
    if (fence && !open) {
      open = { page, line: number + 1, lang: fence.lang ?? '', info: fence.info ?? '', text: '', section };
    } else if (fence && open) {
      blocks.push(open);
      open = undefined;
    } else if (open) {
      open.text += `${text}\n`;
    }
  }
  if (open) throw new Error(`${page}: the block of line ${open.line} has no end`);
  return blocks;
}

/** The names by which links reach the headings of a page, as GitHub makes them. */
export function anchorsOf(page: string): Set<string> {
  const anchors = new Set<string>();
  for (const { text, isCode } of linesOf(page)) {
    const heading = isCode ? undefined : /^#+ +(.*?) *#*$/.exec(text)?.[1];
    if (heading === undefined) continue;
    const name = anchorOf(heading);
    let unique = name;
    for (let count = 1; anchors.has(unique); count++) unique = `${name}-${count}`;
    anchors.add(unique);
  }
  return anchors;
}

/** The targets of the links and pictures of a page. */
export function linksOf(page: string): { line: number; target: string }[] {
  return linesOf(page)
    .filter(({ isCode }) => !isCode)
    .flatMap(({ text, number }) =>
      [...text.replace(/`[^`]*`/g, '').matchAll(/\]\(<?([^)\s>]+)>?\)/g)].map((match) => ({
        line: number,
        target: match[1] ?? '',
      })),
    );
}

function anchorOf(heading: string): string {
  const shown = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*]/g, '');
  return shown
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M} _-]/gu, '')
    .replaceAll(' ', '-');
}

function linesOf(page: string): Line[] {
  let isOpen = false;
  return readFileSync(join(ROOT, page), 'utf8')
    .split('\n')
    .map((text, index) => {
      const isFence = /^ *```/.test(text);
      const isCode = isFence || isOpen;
      if (isFence) isOpen = !isOpen;
      return { text, number: index + 1, isCode };
    });
}
