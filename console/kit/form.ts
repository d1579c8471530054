import type { ComponentChildren as Content } from 'preact';
import { useId, useState } from 'preact/hooks';
import type { Failure, Issue } from '../api.ts';
import { html } from '../html.ts';
import { place } from '../router.ts';
import { FailureBox, noteTold, useAction } from './page.ts';
import { issueSentence } from './sentences.ts';

/** The attributes of an input for a local time; its year has four digits. */
export const LOCAL_TIME = { type: 'datetime-local', step: 1, max: '9999-12-31T23:59:59' };

/** Returns a time as an input for local times has it; nothing for one that is none. */
export function localOf(at: string | number): string {
  const date = new Date(at);
  return utcOf(date.getTime() - date.getTimezoneOffset() * 60_000).slice(0, 19);
}

/** Returns a local time, such as the value of an input, in UTC; nothing if it is not a time. */
export function utcOf(at: string | number): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? '' : date.toISOString();
}

export function inputOf(event: Event): string {
  return (event.target as HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement).value;
}

/** Returns what a failure says about the member of the input at a path; undefined if nothing. */
export function issueAt(issues: readonly Issue[], path: string): string | undefined {
  return issues.find((issue) => issue.path.join('.') === path)?.message;
}

export interface FieldInput {
  label: string;
  hint?: string | undefined;
  issue?: string | undefined;
  /** Why the form was refused, and where the value stands in its input: an issue there is shown until one types. */
  failure?: Failure | undefined;
  path?: string;
}

/** A labelled input, with its hint or what is wrong with it. */
export function Field({ label, hint, failure, path = '', issue, children }: FieldInput & { children: (described: object) => Content }) {
  const id = useId();
  const [corrected, setCorrected] = useState<Failure>();
  const said = failure && failure !== corrected ? issueAt(failure.issues, path) : undefined;
  if (failure && said !== undefined) noteTold(failure, path);
  const told = issue ?? (said && issueSentence(label, said));
  const isDescribed = told !== undefined || hint !== undefined;
  return html`<div class="field" onInput=${() => setCorrected(failure)}>
    <label for=${id}>${label}</label>
    ${children({ id, 'aria-describedby': isDescribed ? `${id}-told` : undefined, 'aria-invalid': told !== undefined })}
    ${isDescribed && html`<small id=${`${id}-told`} class=${told === undefined ? '' : 'issue'}>${told ?? hint}</small>`}
  </div>`;
}

type InputInput = FieldInput & { value: string; onInput(value: string): void; [attribute: string]: unknown };

export function Input({ label, hint, issue, failure, path, value, onInput, ...attributes }: InputInput) {
  return html`<${Field} ...${{ label, hint, issue, failure, path }}>${(described: object) =>
    html`<input autocomplete="off" spellcheck=${false} ...${attributes} ...${described} value=${value} onInput=${(event: Event) => onInput(inputOf(event))} />`}<//>`;
}

type EntryInput = FieldInput & { value: string; isTime?: boolean; onEnter(value: string): void; [attribute: string]: unknown };

/** A line of text or a time, in UTC, that counts once it is entered as a whole. */
export function Entry({ label, hint, issue, value, isTime = false, onEnter, ...attributes }: EntryInput) {
  // What is typed and not yet entered stays when the view around it changes.
  const [typed, setTyped] = useState<string>();
  const here = place.value;
  const enter = (event: Event) => {
    setTyped(undefined);
    // An input that goes with its view reports what was typed: to leave is not to enter.
    if (place.peek() !== here) return;
    onEnter(isTime ? utcOf(inputOf(event)) : inputOf(event).trim());
  };
  return html`<${Field} ...${{ label, hint, issue }}>${(described: object) =>
    html`<input autocomplete="off" spellcheck=${false} ...${isTime && LOCAL_TIME} ...${attributes} ...${described}
      value=${typed ?? (isTime ? localOf(value) : value)} onInput=${(event: Event) => setTyped(inputOf(event))} onChange=${enter} />`}<//>`;
}

type SelectInput = FieldInput & { value: string; options: readonly (readonly [value: string, text: string])[]; onChange(value: string): void };

export function Select({ label, hint, issue, failure, path, value, options, onChange, ...attributes }: SelectInput) {
  return html`<${Field} ...${{ label, hint, issue, failure, path }}>${(described: object) =>
    html`<select ...${attributes} ...${described} value=${value} onChange=${(event: Event) => onChange(inputOf(event))}>${options.map(
      ([option, text]) => html`<option value=${option}>${text}</option>`,
    )}</select>`}<//>`;
}

export function Check({ label, checked, onChange, ...attributes }: { label: Content; checked: boolean; onChange(checked: boolean): void }) {
  return html`<label class="check"><input type="checkbox" ...${attributes} checked=${checked} onChange=${() => onChange(!checked)} />${label}</label>`;
}

/** What a form sends: its texts, as they are typed, and an input for each of them. */
export function useForm<Name extends string>(first: Readonly<Record<Name, string>>) {
  const [given, setGiven] = useState(first);
  const action = useAction();
  const input = (name: Name, label: string, more: object = {}) =>
    html`<${Input} label=${label} name=${name} required value=${given[name]} failure=${action.failure} path=${name}
      onInput=${(text: string) => setGiven((now) => ({ ...now, [name]: text }))} ...${more} />`;
  return { given, setGiven, input, action };
}

type FormInput = ReturnType<typeof useAction> & { verb: string; isReady?: boolean; class?: string; act(): Promise<unknown>; children?: Content };

/** Fields, why the server refused them, and the button that sends them. */
export function Form({ run, isBusy, failure, verb, isReady = true, class: name = 'stack', act, children }: FormInput) {
  const submit = (event: Event) => {
    event.preventDefault();
    if (isReady) void run(act);
  };
  return html`<form class=${name} onSubmit=${submit}>${children}
    <${FailureBox} failure=${failure} />
    <p class="actions end"><button type="submit" class="primary" disabled=${isBusy || !isReady}>${verb}</button></p></form>`;
}
