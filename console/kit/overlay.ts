import { signal } from '@preact/signals';
import type { ComponentChildren as Content } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { html } from '../html.ts';
import { guardLeaving } from '../router.ts';
import { Icon } from './icons.ts';
import { FailureBox, useAction } from './page.ts';
import { CopyLink } from './text.ts';

type DialogInput = { title: string; onClose: () => void; children?: Content };

/** A dialog above the view; Escape closes it, and the focus goes back to where it was. */
export function Dialog({ title, onClose, children, class: name = '', actions }: DialogInput & { class?: string; actions?: Content }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    // What there is to choose comes before the buttons.
    if (name !== 'sheet') dialog.current?.querySelector<HTMLElement>('input, select, textarea')?.focus();
    return () => before instanceof HTMLElement && before.focus();
  }, []);
  // At once: the browser reports a closed dialog with the next frame, when the person may be elsewhere.
  const cancel = (event: Event) => [event.preventDefault(), onClose()];
  // No dialog can refuse the second Escape in a row: one that stays opens again.
  const reopen = () => setTimeout(() => dialog.current?.showModal());
  return html`<dialog ref=${dialog} class=${name} aria-labelledby=${id} onCancel=${cancel} onClose=${reopen}>
    <div class="head"><h2 id=${id} tabindex="-1">${title}</h2>${actions}</div>${children}</dialog>`;
}

export function Sheet({ title, onClose, children }: DialogInput) {
  const actions = html`<div class="actions"><${CopyLink} /><button type="button" class="quiet" aria-label="Close" onClick=${onClose}><${Icon} name="close" /></button></div>`;
  return html`<${Dialog} title=${title} class="sheet" actions=${actions} onClose=${onClose}>${children}<//>`;
}

interface ConfirmInput extends DialogInput {
  verb: string;
  /** Whether it is asked at once. */
  isAsked?: boolean;
  /** Whether nothing is lost by it. */
  isHarmless?: boolean;
  /** What the button that does nothing says. */
  keep?: string;
  act(): Promise<unknown>;
}

/** Asks before something is done, and names what cannot be undone; it stays until that is over. */
export function Confirm({ title, verb, isHarmless = false, keep = 'Cancel', children, act, onClose }: ConfirmInput) {
  const { run, isBusy, failure } = useAction();
  const submit = (event: Event) => {
    event.preventDefault();
    void run(() => act().then(onClose));
  };
  const close = () => isBusy || onClose();
  return html`<${Dialog} title=${title} onClose=${close}><form onSubmit=${submit}>
    ${children}
    <${FailureBox} failure=${failure} />
    <p class="actions end"><button type="button" autofocus disabled=${isBusy} onClick=${onClose}>${keep}</button>
      <button type="submit" class=${isHarmless ? 'primary' : 'danger'} disabled=${isBusy}>${verb}</button></p>
  </form><//>`;
}

/** Asks before what is typed is left, in the console and in the browser. */
export function LeaveGuard({ isDirty }: { isDirty: boolean }) {
  const [leaving, setLeaving] = useState<{ then(): void }>();
  useEffect(() => {
    if (!isDirty) return;
    const stay = (event: BeforeUnloadEvent) => event.preventDefault();
    guardLeaving((then) => setLeaving({ then }));
    addEventListener('beforeunload', stay);
    return () => {
      guardLeaving(undefined);
      removeEventListener('beforeunload', stay);
    };
  }, [isDirty]);
  if (!leaving) return null;
  const act = async () => [guardLeaving(undefined), leaving.then()];
  return html`<${Confirm} title="Leave without saving?" verb="Leave" keep="Keep editing" act=${act} onClose=${() => setLeaving(undefined)}>
    <p>Your changes are not saved anywhere and will be lost.</p><//>`;
}

export function ConfirmButton(asked: Omit<ConfirmInput, 'onClose'>) {
  const [isAsking, setAsking] = useState(false);
  // A dialog around it is shown first.
  useEffect(() => setAsking(asked.isAsked ?? false), []);
  return html`<button type="button" class=${asked.isHarmless ? '' : 'risky'} onClick=${() => setAsking(true)}>${asked.verb}</button>
    ${isAsking && html`<${Confirm} ...${asked} onClose=${() => setAsking(false)} />`}`;
}

interface Toast {
  id: number;
  text: Content;
  action: { text: string; act(): unknown } | undefined;
}

const SHOWN_MS = 6_000;
const toasts = signal<readonly Toast[]>([]);
let last = 0;

const put = (id: number) => {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
};

/** Says for some seconds what was done, with a way to undo it or to go on. Returns what ends it. */
export function toast(text: Content, { action, shownMs = SHOWN_MS }: { action?: Toast['action']; shownMs?: number } = {}): () => void {
  last += 1;
  const id = last;
  toasts.value = [...toasts.value, { id, text, action }];
  setTimeout(put, shownMs, id);
  return () => put(id);
}

export function Toasts() {
  const list = useRef<HTMLDivElement>(null);
  const shown = toasts.value;
  useEffect(() => {
    list.current?.hidePopover();
    if (shown.length > 0) list.current?.showPopover();
    // What would lie below them moves up.
    document.documentElement.style.setProperty('--toasts', `${list.current?.offsetHeight ?? 0}px`);
  }, [shown]);
  return html`<div class="toasts" popover="manual" role="status" ref=${list}>${shown.map(
    ({ id, text, action }) =>
      html`<p key=${id}><span>${text}</span>${
        action && html`<button type="button" class="plain" onClick=${() => [put(id), action.act()]}>${action.text}</button>`
      }<button type="button" class="quiet" aria-label="Dismiss" onClick=${() => put(id)}><${Icon} name="close" /></button></p>`,
  )}</div>`;
}
