// Package deploy holds the configuration that docker-compose.yml mounts.
package deploy
