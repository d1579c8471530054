/** Lines of at most `width` characters; a word that is longer has a line of its own. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

/** The same of a text of several lines, of which those that are indented stay as they are. */
export function reflow(text: string, width: number): string[] {
  const parts: string[] = [];
  let isOpen = false;
  for (const line of text.split('\n')) {
    const isKept = line.startsWith(' ');
    if (isOpen && !isKept) parts.push(`${parts.pop() ?? ''} ${line}`);
    else parts.push(line);
    isOpen = !isKept;
  }
  return parts.flatMap((part) => (part.startsWith(' ') ? [part] : wrap(part, width)));
}
