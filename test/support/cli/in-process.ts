import { cli } from '../../../src/cli/cli.ts';

/** What a command printed and its exit code. */
export interface CliResult {
  code: number;
  out: string;
  err: string;
}

/** Runs a command in this process; `line` is what is piped in. */
export async function portcullis(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
  line?: string,
): Promise<CliResult> {
  const result = { out: '', err: '' };
  const code = await cli(args, env, {
    out: (text) => {
      result.out += text;
    },
    err: (text) => {
      result.err += text;
    },
    readLine: async () => line,
  });
  return { code, ...result };
}
