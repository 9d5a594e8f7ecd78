{{- define "millrace.labels" -}}
app.kubernetes.io/name: millrace
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "millrace.selector" -}}
{{ include "millrace.labels" .root }}
app.kubernetes.io/component: {{ .name }}
{{- end }}

{{/* The pod of a role; learn and train take the run's configuration, the others read it from the log. */}}
{{- define "millrace.pod" -}}
{{- $values := .root.Values -}}
{{- $begins := has .name (list "learn" "train") -}}
metadata:
  labels: {{- include "millrace.selector" . | nindent 4 }}
spec:
  {{- if $begins }}
  restartPolicy: Never
  {{- end }}
  terminationGracePeriodSeconds: 60
  automountServiceAccountToken: false
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    fsGroup: 10001
    seccompProfile: {type: RuntimeDefault}
  {{- with .role.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .role.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: {{ .name }}
      image: {{ .role.image | default (printf "%s:%s" $values.image.repository ($values.image.tag | default .root.Chart.AppVersion)) }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      args:
        - {{ .name }}
        - --bootstrap-servers={{ $values.kafka }}
        {{- if eq .name "evaluate" }}
        - --follow
        - --run={{ $values.run }}
        {{- else }}
        - --set=run.id={{ $values.run }}
        {{- end }}
        - --set=http.host=0.0.0.0
        - --set=http.token_variable=HTTP_TOKEN
        - --set=metrics.port=9464
        {{- if $begins }}
        - --config=/etc/millrace/millrace.yaml
        {{- end }}
        {{- if $values.secrets.kafka }}
        - --command-config=/etc/kafka/client.properties
        {{- end }}
        {{- if eq .name "generate" }}
        - --set=generator.id=$(POD)
        {{- else if eq .name "gateway" }}
        - --set=generator.id=$(POD)
        - --set=gateway.host=0.0.0.0
        - --set=gateway.port=8090
        - --set=gateway.token_variable=GATEWAY_TOKEN
        - --set=gateway.public_url=http://$(POD).{{ .root.Release.Name }}-gateway.$(NAMESPACE).svc:8090
        {{- else if eq .name "score" }}
        - --set=scorer.id=$(POD)
        {{- else if eq .name "stream" }}
        - --state-dir=/tmp/state
        {{- else if eq .name "train" }}
        - --plain
        - --run-dir=/runs/{{ $values.run }}
        {{- end }}
        {{- range .role.arguments }}
        - {{ . | quote }}
        {{- end }}
      env:
        - {name: MILLRACE_LOG_FORMAT, value: json}
        - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: HTTP_TOKEN, valueFrom: {secretKeyRef: {name: {{ $values.secrets.http }}, key: token}}}
        {{- if eq .name "gateway" }}
        - {name: NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
        - {name: GATEWAY_TOKEN, valueFrom: {secretKeyRef: {name: {{ $values.secrets.gateway }}, key: token}}}
        {{- end }}
      {{- with $values.secrets.environment }}
      envFrom: [{secretRef: {name: {{ . }}}}]
      {{- end }}
      ports:
        - {name: http, containerPort: 9464}
        {{- if eq .name "gateway" }}
        - {name: gateway, containerPort: 8090}
        {{- end }}
      startupProbe: {httpGet: {path: /livez, port: http}, periodSeconds: 10, failureThreshold: 60}
      livenessProbe: {httpGet: {path: /livez, port: http}, periodSeconds: 10}
      readinessProbe: {httpGet: {path: /readyz, port: http}, periodSeconds: 10}
      securityContext:
        readOnlyRootFilesystem: true
        allowPrivilegeEscalation: false
        capabilities: {drop: [ALL]}
      resources: {{- toYaml .role.resources | nindent 8 }}
      volumeMounts:
        - {name: tmp, mountPath: /tmp}
        {{- if .role.volume }}
        - {name: runs, mountPath: /runs}
        {{- end }}
        {{- if $begins }}
        - {name: configuration, mountPath: /etc/millrace}
        {{- end }}
        {{- if $values.secrets.kafka }}
        - {name: kafka, mountPath: /etc/kafka}
        {{- end }}
        {{- with .role.volumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - {name: tmp, emptyDir: {}}
    {{- if .role.volume }}
    - {name: runs, persistentVolumeClaim: {claimName: {{ .root.Release.Name }}-{{ .name }}}}
    {{- end }}
    {{- if $begins }}
    - {name: configuration, configMap: {name: {{ .root.Release.Name }}}}
    {{- end }}
    {{- with $values.secrets.kafka }}
    - {name: kafka, secret: {secretName: {{ . }}}}
    {{- end }}
    {{- with .role.volumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}
