/**
 * Secrets in settings: how they are written down, and how they are never written anywhere.
 *
 * <p>A setting's text may refer to a secret instead of holding it: {@code ${env:NAME}} is a variable of the environment,
 * {@code ${file:PATH:KEY}} an entry of a properties file, alone or inside a longer text such as a JAAS line. Promises:
 *
 * <ol>
 *   <li>A reference is followed when a client is made, by Kafka's own providers, and never before. Nothing of ours holds what it
 *       leads to, so a secret that is changed is found by the next client.
 *   <li>A secret that is written literally works, and is {@code [hidden]} wherever its text is shown: {@code toString}, copies of a
 *       configuration, messages.
 *   <li>A reference that leads nowhere is refused by a sentence that names it. So is a copy's {@code [hidden]} where the secret
 *       itself is needed.
 * </ol>
 */
@NullMarked
package dev.millrace.log.secret;

import org.jspecify.annotations.NullMarked;
