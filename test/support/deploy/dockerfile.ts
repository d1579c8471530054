/** One instruction of a Dockerfile, its continued lines joined. */
export interface Instruction {
  name: string;
  /** The flags before the arguments, `from` of `--from=install`. */
  flags: Readonly<Record<string, string>>;
  text: string;
  /** The arguments: of the JSON form its strings, else what spaces part. */
  words: readonly string[];
}

/** The stages, the last one being the image; what stands before the first FROM is in none. */
export type Stage = readonly Instruction[];

/**
 * Reads a Dockerfile (its reference, "Format"), with the values of its global ARGs put in.
 * @throws Error for a line that is no instruction.
 */
export function stagesOf(source: string): Stage[] {
  const all = instructionsOf(source);
  const first = all.findIndex(({ name }) => name === 'FROM');
  const globals = new Map(all.slice(0, first).map(({ words }) => splitOnce(words[0] ?? '', '=')));
  const stages: Instruction[][] = [];
  for (const instruction of all.slice(first)) {
    if (instruction.name !== 'FROM') stages.at(-1)?.push(instruction);
    else stages.push([{ ...instruction, words: instruction.words.map((word) => filled(word, globals)) }]);
  }
  return stages;
}

/** The only instruction of the name. */
export function only(stage: Stage, name: string): Instruction {
  const found = stage.filter((instruction) => instruction.name === name);
  if (found.length !== 1 || found[0] === undefined) throw new Error(`${found.length} ${name} in the stage`);
  return found[0];
}

function instructionsOf(source: string): Instruction[] {
  const lines = source.split('\n').filter((line) => line.trim() !== '' && !line.trim().startsWith('#'));
  return lines
    .join('\n')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .map(instructionOf);
}

function instructionOf(line: string): Instruction {
  const {
    name,
    flags = '',
    text = '',
  } = /^(?<name>[A-Z]+)\s+(?<flags>(?:--[a-z-]+=\S+\s+)*)(?<text>.*)$/.exec(line)?.groups ?? {};
  if (name === undefined) throw new Error(`no instruction: ${line}`);
  const json = /^(?:CMD )?(\[.*\])$/.exec(text)?.[1];
  const words: string[] = json === undefined ? text.split(/\s+/) : JSON.parse(json);
  const pairs = flags.trim().split(/\s+/).filter(Boolean);
  return { name, flags: Object.fromEntries(pairs.map((pair) => splitOnce(pair.slice(2), '='))), text, words };
}

function splitOnce(text: string, at: string): [string, string] {
  const index = text.indexOf(at);
  return [text.slice(0, index), text.slice(index + at.length)];
}

function filled(word: string, values: ReadonlyMap<string, string>): string {
  return word.replaceAll(/\$\{([A-Z_]+)\}/g, (_, name: string) => values.get(name) ?? '');
}
