import { MASK, secretValueAt } from '../audit/mask-keys.ts';

/** A piece of a document and what stands in its place. */
export interface Span {
  start: number;
  end: number;
  replacement: string;
}

/** A literal that is masked: a string, whatever it was. */
export const MASKED_LITERAL = `"${MASK}"`;

/** A comment that is masked. */
export const MASKED_COMMENT = `# ${MASK}`;

/** The text with its spans replaced; a span within another one counts for nothing. */
export function replaceSpans(text: string, spans: readonly Span[]): string {
  const ordered = spans.toSorted((a, b) => a.start - b.start || b.end - a.end);
  let kept = '';
  let from = 0;
  for (const { start, end, replacement } of ordered) {
    if (start < from) continue;
    kept += text.slice(from, start) + replacement;
    from = end;
  }
  return kept + text.slice(from);
}

/** Whether a comment may hold a secret: what was commented out was an operation. */
export function isSuspectComment(comment: string): boolean {
  return comment.includes('"') || secretValueAt(comment) !== -1;
}
