import { AsyncLocalStorage } from 'node:async_hooks';

/** What a request, or one of its operations, has noted of users; undefined until there is one. */
export interface UserNotes {
  notedUsers: Set<string> | undefined;
}

const current = new AsyncLocalStorage<UserNotes>();

/** Runs work of a request, or of one of its operations; the users that stores note meanwhile are added to `notes`. */
export function notingUsers<Result>(notes: UserNotes, work: () => Result): Result {
  return current.run(notes, work);
}

/** Returns the notes of the current async context; undefined outside a request. */
export function userNotes(): UserNotes | undefined {
  return current.getStore();
}

/**
 * Notes users whose rows were created, changed, returned or matched as duplicates: the audit record and the kept response
 * of the request are erased with them. Does nothing outside a request, unless `notes` are given.
 */
export function noteUsers(ids: Iterable<string>, notes = userNotes()): void {
  if (!notes) return;
  for (const id of ids) {
    notes.notedUsers ??= new Set();
    notes.notedUsers.add(id);
  }
}

/** Returns the users noted so far, as they are stored; null if there are none. */
export function notedIds(notes = userNotes()): string[] | null {
  return notes?.notedUsers ? [...notes.notedUsers] : null;
}
