'use client'
// When React hydrates a page that a server has rendered, it sets neither the properties nor the listeners of custom
// elements. So this component sets both in effects. The file is JavaScript, so that a build of the client needs no
// types of React.
import { createElement, useEffect, useRef } from 'react'
import '../dist/inbox.js'

export function CourtsideInbox({ client, settings, onNotificationOpen, onSignInRequest, ...attributes }) {
  const element = useRef(null)
  const listeners = useRef({})
  useEffect(() => {
    listeners.current = { 'notification-open': onNotificationOpen, 'sign-in-request': onSignInRequest }
  })
  useEffect(() => {
    element.current.client = client
  }, [client])
  useEffect(() => {
    const inbox = element.current
    const onEvent = event => listeners.current[event.type]?.(event)
    const names = ['notification-open', 'sign-in-request']
    for (const name of names) inbox.addEventListener(name, onEvent)
    return () => {
      for (const name of names) inbox.removeEventListener(name, onEvent)
    }
  }, [])
  // React 18 would write `false` as the attribute value "false". HTML treats an attribute with any value as present.
  return createElement('courtside-inbox', { ...attributes, ...(settings && { settings: '' }), ref: element })
}
