import { signal } from '@preact/signals';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { html } from '../html.ts';
import { onSignOut } from '../remembered.ts';
import { Field, type FieldInput, inputOf } from './form.ts';
import { Id } from './text.ts';

/** Something that can be picked: its id, its name, what tells it from others of that name, the id of what it belongs to, and its chain. */
export type Option = { id: string; text: string; detail?: string | undefined; of?: string; chain?: string | undefined; isClient?: boolean };

/** Where options come from: the first whose names contain a text, and the one with an id, undefined where there is none. */
export interface Source {
  search(text: string, signal: AbortSignal): Promise<readonly Option[]>;
  find(id: string): Promise<Option | undefined>;
}

/** Its value is the id that is picked; another text where none is. */
type PickerInput = FieldInput & { value: string; source: Source; onChange(id: string): void; required?: boolean };

/** The UUIDs within a text, and a text that is one. */
export const UUIDS = /([\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12})/gi;
export const UUID = new RegExp(`^${UUIDS.source}$`, 'i');
const PAUSE_MS = 150;
/** The height of a full list, in pixels, with what sticks to the end of the window. */
const LIST_PX = 330;

/** What ids name, as far as it was looked up or picked since the sign-in. */
const NAMES = signal<ReadonlyMap<string, Option>>(new Map());
const LOOKED_UP = new Set<string>();
const remember = (id: string, option: Option) => {
  NAMES.value = new Map(NAMES.value).set(id.toLowerCase(), option);
};
onSignOut(() => {
  NAMES.value = new Map();
  LOOKED_UP.clear();
});

/** Returns what an id names; undefined until it is known, and where there is nothing. */
export function useOption(source: Source, id: string): Option | undefined {
  const key = id.toLowerCase();
  useEffect(() => {
    if (!UUID.test(key) || NAMES.value.has(key) || LOOKED_UP.has(key)) return;
    LOOKED_UP.add(key);
    const found = (option?: Option) => LOOKED_UP.delete(key) && option && remember(key, option);
    source.find(key).then(found, () => found());
  }, [key]);
  return NAMES.value.get(key);
}

export const useName = (source: Source, id: string) => useOption(source, id)?.text;

/** What is found before anything is. */
const NONE_YET: readonly Option[] = [];

/** Returns the options that were found last and for which text, none for who may not read them; undefined searches nothing. */
export function useFound(source: Source, text: string | undefined, pauseMs = 0) {
  const [found, setFound] = useState({ of: text, options: NONE_YET });
  useEffect(() => {
    if (text === undefined) return;
    const looking = new AbortController();
    const show = (options: readonly Option[]) => looking.signal.aborted || setFound({ of: text, options });
    const timer = setTimeout(() => source.search(text, looking.signal).then(show, () => undefined), pauseMs);
    return () => {
      clearTimeout(timer);
      looking.abort();
    };
  }, [text]);
  return found;
}

/** An input for the id of something that has a name: one searches by the name, or pastes the id; an unknown id stays. */
export function Picker({ label, hint, issue, failure, path = '', value, source, onChange, ...attributes }: PickerInput) {
  const list = useId();
  const known = useOption(source, value);
  const [isOpen, setOpen] = useState(false);
  const [active, setActive] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const searched = known ? '' : UUID.test(value) ? undefined : value.trim();
  const { of, options } = useFound(source, isOpen ? searched : undefined, PAUSE_MS);
  useEffect(() => setActive(0), [options]);
  useEffect(() => box.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' }), [active, isOpen]);
  const isShown = isOpen && searched !== undefined && options.length > 0;
  // Where the list would end below the window, and there is more space above it.
  const { top = 0, bottom = 0 } = (isShown && box.current?.getBoundingClientRect()) || {};
  const isUp = bottom + LIST_PX > innerHeight && top > innerHeight - bottom;
  const pick = (option: Option | undefined) => {
    if (!option) return;
    remember(option.id, option);
    setOpen(false);
    onChange(option.id);
  };
  const press = (event: KeyboardEvent) => {
    const { key } = event;
    const step = { ArrowDown: 1, ArrowUp: -1 }[key];
    if (step !== undefined) {
      setOpen(true);
      if (isShown) setActive((active + step + options.length) % options.length);
    } else if (key === 'Enter' && isOpen && searched !== undefined) {
      // It chooses, and sends no form; what an earlier text found is not chosen.
      if (of === searched) pick(options[active]);
    } else if (key === 'Escape' && isShown) setOpen(false);
    else return;
    event.preventDefault();
  };
  const type = (event: Event) => {
    setOpen(true);
    const typed = inputOf(event);
    onChange(UUID.test(typed.trim()) ? typed.trim() : typed);
  };
  return html`<div class="picker" ref=${box} onFocusOut=${() => setOpen(false)}>
    <${Field} label=${label} hint=${known?.detail || hint} issue=${issue} failure=${failure} path=${path}>${(
      described: object,
    ) => html`<input ...${attributes} ...${described}
      role="combobox" aria-autocomplete="list" aria-expanded=${isShown} aria-controls=${list} aria-activedescendant=${isShown ? `${list}-${active}` : undefined}
      autocomplete="off" spellcheck=${false} title=${known && value} value=${known?.text ?? value}
      onInput=${type} onKeyDown=${press} onClick=${() => setOpen(true)} onFocus=${({ target }: Event) => (target as HTMLInputElement).select()} />`}<//>
    <ul role="listbox" id=${list} class=${isUp ? 'up' : ''} aria-label=${label} hidden=${!isShown}>${options.map(
      (option, at) => html`<li role="option" id=${`${list}-${at}`} key=${option.id} aria-selected=${at === active}
        onMouseDown=${(event: Event) => event.preventDefault()} onClick=${() => pick(option)}>${option.text}${option.detail && html`<small>${option.detail}</small>`}</li>`,
    )}</ul>
    ${isOpen && searched && options.length === 0 && options !== NONE_YET && html`<p class="none" role="status">Nothing matches.</p>`}
  </div>`;
}

export const Named = ({ source, id, link }: { source: Source; id: string; link?: string }) => html`<${Id} id=${id} link=${link} name=${useName(source, id)} />`;
