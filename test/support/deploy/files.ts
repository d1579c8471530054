import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { portcullis } from '../cli/in-process.ts';
import { ROOT, type Variables } from '../start/process.ts';

export const KUBERNETES = 'deploy/kubernetes';

export const manifest: { version: string; scripts: Record<string, string>; devDependencies: Record<string, string> } =
  JSON.parse(read('package.json'));

/** The text of a file of the repository. */
export function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

/** A YAML file of one document, with its anchors and merges resolved. */
export function readYaml<Content>(path: string): Content {
  return parse(read(path), { merge: true });
}

/** What of an object of Kubernetes the tests look at; its kind's schema says the rest. */
export interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; labels?: Record<string, string> };
  data?: Variables;
  stringData?: Variables;
  spec?: unknown;
}

/** Every object of the manifests, by the name of its file. */
export function manifests(): { file: string; object: Manifest }[] {
  const files = globSync('*.yaml', { cwd: join(ROOT, KUBERNETES) }).filter((file) => file !== 'kustomization.yaml');
  return files.sort().flatMap((file) =>
    parseAllDocuments(read(`${KUBERNETES}/${file}`)).map((document) => {
      if (document.errors[0]) throw document.errors[0];
      return { file, object: document.toJS() as Manifest };
    }),
  );
}

/** What deploy/new-secrets.sh prints: other values each time. */
export function newSecrets(): Variables {
  const printed = execFileSync('sh', [join(ROOT, 'deploy/new-secrets.sh')], { encoding: 'utf8' });
  return Object.fromEntries(
    printed
      .trim()
      .split('\n')
      .map((line) => line.split('=', 2)),
  );
}

/** What `portcullis config check` says is wrong with an environment; nothing, where an instance would start. */
export async function faultsOf(env: Variables): Promise<string[]> {
  const { code, out } = await portcullis(['config', 'check', '--json'], env);
  return code === 0 ? [] : JSON.parse(out).faults;
}
