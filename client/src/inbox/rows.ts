import type { Notification } from '../api.ts'
import { createRow, type Row } from './row.ts'
import type { Language } from './texts.ts'

/** Manages the rows of the visible list. A row keeps the same element until its notification leaves the list. */
export class Rows {
  readonly #list: HTMLUListElement
  readonly #onOpen: (id: number) => void
  readonly #onRemove: (id: number) => void
  readonly #rows = new Map<number, Row>()

  constructor(list: HTMLUListElement, onOpen: (id: number) => void, onRemove: (id: number) => void) {
    this.#list = list
    this.#onOpen = onOpen
    this.#onRemove = onRemove
  }

  get(id: number): Row | undefined {
    return this.#rows.get(id)
  }

  show(items: readonly Notification[], language: Language): void {
    const shown = new Set(items.map(({ id }) => id))
    for (const [id, row] of this.#rows) {
      if (shown.has(id)) continue
      row.item.remove()
      this.#rows.delete(id)
    }
    items.forEach((notification, index) => {
      const row = this.#rows.get(notification.id) ?? this.#create(notification.id)
      row.show(notification, language)
      // An element loses the focus when it is moved, so we do not move a row that is already in the right place.
      const occupant = this.#list.children[index]
      if (occupant !== row.item) this.#list.insertBefore(row.item, occupant ?? null)
    })
  }

  #create(id: number): Row {
    const row = createRow(
      () => this.#onOpen(id),
      () => this.#onRemove(id),
    )
    this.#rows.set(id, row)
    return row
  }
}
