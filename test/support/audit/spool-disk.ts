import type * as fs from 'node:fs';

type Fs = typeof fs;

export const HEALTHY = { room: Number.POSITIVE_INFINITY, isWorn: false };

/** The disk below a spool: `room` is what it takes yet, in bytes; a worn one does not even cut or remove a segment. */
export const disk = { ...HEALTHY };

/** `node:fs` over that disk. */
export function onDisk(real: Fs): Fs {
  const writeSync = (fd: number, bytes: Buffer, at = 0) => {
    if (disk.room === 0) fail('ENOSPC');
    const written = real.writeSync(fd, bytes, at, Math.min(disk.room, bytes.length - at));
    disk.room -= written;
    return written;
  };
  const ftruncateSync: Fs['ftruncateSync'] = (fd, size) => (disk.isWorn ? fail('EIO') : real.ftruncateSync(fd, size));
  const rmSync: Fs['rmSync'] = (path, options) =>
    disk.isWorn && String(path).endsWith('.seg') ? fail('EIO') : real.rmSync(path, options);
  return { ...real, writeSync: writeSync as Fs['writeSync'], ftruncateSync, rmSync };
}

function fail(code: string): never {
  throw Object.assign(new Error(code), { code });
}
