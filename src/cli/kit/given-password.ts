import { randomBytes } from 'node:crypto';
import { type CommandInput, UsageError } from './command.ts';

const GENERATED_BYTES = 18;

/** A password, and whether it was made here: then it is to be shown, once. */
export interface GivenPassword {
  password: string;
  isGenerated: boolean;
}

/**
 * The password on the first line of the standard input, or one that is made here where there is none. Never a flag:
 * others on the machine see those.
 * @throws UsageError for an empty line.
 */
export async function givenPassword({ readLine }: Pick<CommandInput, 'readLine'>): Promise<GivenPassword> {
  const line = await readLine();
  if (line === undefined) return { password: randomBytes(GENERATED_BYTES).toString('base64url'), isGenerated: true };
  if (line === '') throw new UsageError('the standard input begins with an empty line: pipe the password, or nothing');
  return { password: line, isGenerated: false };
}
