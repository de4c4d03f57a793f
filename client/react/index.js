'use client'
// When React hydrates a page that a server has rendered, it sets neither the properties nor the listeners of custom
// elements. So this component sets both in effects. The file is JavaScript, so that a build of the client needs no
// types of React.
import { createElement, useEffect, useRef } from 'react'
import '../dist/inbox.js'

export function CourtsideInbox({ client, onNotificationOpen, ...attributes }) {
  const element = useRef(null)
  const listener = useRef(onNotificationOpen)
  useEffect(() => {
    listener.current = onNotificationOpen
  })
  useEffect(() => {
    element.current.client = client
  }, [client])
  useEffect(() => {
    const inbox = element.current
    const onOpen = event => listener.current?.(event)
    inbox.addEventListener('notification-open', onOpen)
    return () => inbox.removeEventListener('notification-open', onOpen)
  }, [])
  return createElement('courtside-inbox', { ...attributes, ref: element })
}
