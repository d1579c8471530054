import { execFile, spawnSync } from 'node:child_process';
import { chmod, copyFile, cp, mkdir, symlink } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { only, type Stage, stagesOf } from '../deploy/dockerfile.ts';
import { read } from '../deploy/files.ts';
import { ROOT } from '../start/process.ts';

const run = promisify(execFile);

/** What the image would be, in a folder: `app` is its /app, `bin` its /usr/local/bin, `data` and `tmp` what it may write to. */
export interface ImageFolder {
  app: string;
  bin: string;
  data: string;
  tmp: string;
  /** The last stage of the Dockerfile. */
  image: Stage;
}

/** Does what the Dockerfile does: its COPYs, its installation, and this Node in the place of its base image's. */
export async function imageFolder(folder: string): Promise<ImageFolder> {
  const [install = [], image = []] = stagesOf(read('Dockerfile'));
  const paths = {
    app: join(folder, 'app'),
    bin: join(folder, 'bin'),
    data: join(folder, 'data'),
    tmp: join(folder, 'tmp'),
  };
  const installed = join(folder, 'install');
  for (const path of [...Object.values(paths), installed]) await mkdir(path);
  await copy(install, ROOT, installed);
  await run('sh', ['-c', only(install, 'RUN').text], { cwd: installed, maxBuffer: 64 * 1024 * 1024 });
  await copy(image, ROOT, paths.app);
  for (const { words } of image.filter(({ name, flags }) => name === 'COPY' && flags.from === 'install')) {
    const [from = '', to = ''] = words;
    await cp(join(installed, relative('/app', from)), join(paths.app, to), { recursive: true, verbatimSymlinks: true });
  }
  await copyFile(process.execPath, join(paths.bin, 'node'));
  await chmod(join(paths.bin, 'node'), 0o755);
  await symlink(join(paths.app, 'src/cli/portcullis.ts'), join(paths.bin, 'portcullis'));
  return { ...paths, image };
}

async function copy(stage: Stage, from: string, to: string): Promise<void> {
  for (const { flags, words } of stage.filter(({ name }) => name === 'COPY')) {
    if (flags.from !== undefined) continue;
    const target = words.at(-1) ?? '';
    for (const source of words.slice(0, -1)) {
      const path = target.endsWith('/') ? join(to, target, basename(source)) : join(to, target);
      await mkdir(dirname(path), { recursive: true });
      await cp(join(from, source), path, { recursive: true });
    }
  }
}

/** Whether this user may have a mount table and process ids of its own, which a container has. */
export function mayContain(): boolean {
  return process.getuid?.() === 0 && spawnSync('unshare', ['--mount', '--pid', '--fork', 'true']).status === 0;
}

/**
 * The command line that runs `command` as a container of the image would: as the user of the Dockerfile, as the first
 * process, on a file system of which only /data and /tmp can be written.
 */
export function contained({ app, data, tmp, image }: ImageFolder, command: readonly string[]): string[] {
  const [uid = '', gid = ''] = only(image, 'USER').text.split(':');
  const mounts = [app, data, tmp].map((path) => `mount --bind ${path} ${path}`);
  const script = [
    'set -e',
    ...mounts,
    `mount -o remount,bind,ro ${app}`,
    'mount -o remount,bind,ro /',
    `chown ${uid}:${gid} ${data} ${tmp}`,
    `cd ${app}`,
    `exec setpriv --reuid=${uid} --regid=${gid} --clear-groups -- "$@"`,
  ].join('\n');
  return [
    'unshare',
    '--mount',
    '--pid',
    '--fork',
    '--mount-proc',
    '--kill-child',
    'sh',
    '-c',
    script,
    'sh',
    ...command,
  ];
}
