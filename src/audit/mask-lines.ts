import { maskEmbedded, maskJson, startsDocument } from './mask-json.ts';
import type { JsonRule } from './mask-json-rules.ts';
import { maskText } from './mask-keys.ts';

const LINE_END = /(\r\n|\n|\r)/;
const STREAM_FIELDS = ['', 'event', 'id', 'retry'];

/** Masks newline-delimited JSON; the rest is dropped from the first line on that is not one whole value. */
export function maskJsonLines(text: string, maxLength: number, rule?: JsonRule): string {
  const output: string[] = [];
  let length = 0;
  for (const part of text.split(LINE_END)) {
    if (length >= maxLength) break;
    if (part.trim() === '') {
      output.push(part);
      continue;
    }
    const masked = maskJson(part, maxLength, rule);
    output.push(masked.text);
    length += masked.text.length;
    if (masked.end !== 'complete') break;
  }
  return output.join('');
}

/** Masks free text; a JSON document in it as such. */
export function maskPlain(text: string): string {
  return startsDocument(text) ? maskEmbedded(text) : maskText(text);
}

/**
 * Masks `text/event-stream` (HTML standard section 9.2.6): the `data` lines of an event are joined, as its reader
 * joins them, and masked as one text. Lines of unknown fields, which no reader sees, are dropped.
 */
export function maskEventStream(text: string, maxLength: number, rule?: JsonRule): string {
  const parts = text.split(LINE_END);
  const output: string[] = [];
  let event: Line[] = [];
  let length = 0;
  for (let at = 0; at < parts.length && length < maxLength; at += 2) {
    const line = { text: parts[at] ?? '', end: parts[at + 1] ?? '' };
    event.push(line);
    if (line.text !== '' && at + 2 < parts.length) continue;
    const masked = maskEvent(event, rule);
    output.push(masked);
    length += masked.length;
    event = [];
  }
  return output.join('');
}

type Line = { text: string; end: string };

function maskEvent(lines: Line[], rule: JsonRule | undefined): string {
  const payload = lines.flatMap((line) => dataOf(line.text) ?? []).join('\n');
  const masked = rule === undefined ? maskPlain(payload) : maskJson(payload, undefined, rule).text;
  let data = masked === payload ? undefined : masked.split('\n');
  let output = '';
  for (const line of lines) {
    if (dataOf(line.text) === undefined) output += maskOtherLine(line);
    else if (data === undefined) output += line.text + line.end;
    else {
      output += data.map((part) => `data: ${part}${line.end}`).join('');
      data = [];
    }
  }
  return output;
}

function maskOtherLine(line: Line): string {
  if (line.text === '') return line.end;
  const colon = line.text.indexOf(':');
  if (colon === -1 || !STREAM_FIELDS.includes(line.text.slice(0, colon))) return '';
  return maskText(line.text) + line.end;
}

function dataOf(line: string): string | undefined {
  return line === 'data' ? '' : /^\uFEFF?data: ?(.*)$/s.exec(line)?.[1];
}
