import { readFileSync } from 'node:fs';

/**
 * Returns the secret that a variable has, or that is in the file that the variable `NAME_FILE` names, without a byte
 * order mark at its start and one line break at its end. Returns undefined if neither is set, or if the secret cannot be had, whose reason it adds to
 * `faults`.
 */
export function secretOf(name: string, env: NodeJS.ProcessEnv, faults: string[]): string | undefined {
  const { [name]: value, [`${name}_FILE`]: path } = env;
  if (!path) return value || undefined;
  try {
    const text = value ? '' : new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path));
    const secret = text.replace(/\r?\n$/, '');
    if (secret !== '') return secret;
    faults.push(value ? `${name} and ${name}_FILE are both set: set only one` : `${name}_FILE: ${path} is empty`);
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? error.code : error;
    faults.push(`${name}_FILE: ${path} cannot be read (${reason}): set it to a readable text file in UTF-8`);
  }
  return undefined;
}
