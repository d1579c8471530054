import { join } from 'node:path';
import { findOnPath, runCommand } from './commands.ts';

const PLUGIN = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1';

export interface MavenRequest {
  /** What is fetched, for messages. */
  what: string;
  goal: 'copy-dependencies' | 'unpack';
  args: string[];
  /** A temporary folder for what Maven leaves beside the result. */
  folder: string;
}

/** Runs a goal of Maven's dependency plugin; an error says what is missing on this system. */
export async function maven(request: MavenRequest): Promise<void> {
  const mvn = findOnPath('mvn');
  if (mvn === undefined) {
    const java =
      findOnPath('java') === undefined ? 'neither Java nor Maven is' : 'Java is there, but Maven (mvn) is not';
    throw new Error(`${request.what} is fetched by Maven the first time, and ${java} on the PATH`);
  }
  process.stderr.write(`Maven fetches ${request.what} this once\n`);
  const quiet = ['-q', '-B', '-Dstyle.color=never', `-DmarkersDirectory=${join(request.folder, 'markers')}`];
  try {
    await runCommand(mvn, [...quiet, `${PLUGIN}:${request.goal}`, ...request.args], { cwd: request.folder });
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    const reason = /^\[ERROR\] (.+)$/m.exec(text)?.[1] ?? text;
    throw new Error(`${request.what} could not be fetched by Maven: ${reason}`, { cause: error });
  }
}
