// An import of courtside-client/inbox registers the element <courtside-inbox>.
export * from './inbox/element.ts'
