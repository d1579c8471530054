import { once } from 'node:events';
import type { Socket } from 'node:net';
import { headersOf, type RawAnswer } from './raw.ts';

/** Everything that came over a connection until it was closed. */
export interface Conversation {
  /** Final answers, in the order they came. */
  answers: RawAnswer[];
  /** Statuses below 200. */
  interim: number[];
  /** What is no answer, or only a part of one. */
  rest: string;
}

/** Reads a connection until the other side closes it, whichever way. The answer to a HEAD has no body. */
export async function readAnswers(socket: Socket, methods: readonly string[] = []): Promise<Conversation> {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', () => undefined);
  await once(socket, 'close');
  return parseAnswers(Buffer.concat(chunks).toString('latin1'), methods);
}

function parseAnswers(text: string, methods: readonly string[]): Conversation {
  const conversation: Conversation = { answers: [], interim: [], rest: text };
  for (;;) {
    const { rest, answers } = conversation;
    const end = rest.indexOf('\r\n\r\n');
    if (!rest.startsWith('HTTP/1.1 ') || end < 0) return conversation;
    const status = Number(rest.slice(9, 12));
    const headers = headersOf(rest.slice(0, end));
    const after = rest.slice(end + 4);
    if (status < 200) {
      conversation.interim.push(status);
      conversation.rest = after;
      if (status === 101) return conversation;
      continue;
    }
    const isBare = methods[answers.length] === 'HEAD' || status === 204 || status === 304;
    const length = isBare ? 0 : Number(headers['content-length']);
    if (!(after.length >= length)) return conversation;
    answers.push({ status, headers, body: after.slice(0, length) });
    conversation.rest = after.slice(length);
  }
}
