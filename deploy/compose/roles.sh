# Makes the role by which the services connect. PostgreSQL's image reads this as it makes its data; for data of before:
#   docker compose exec postgres sh /docker-entrypoint-initdb.d/roles.sh
psql --set=ON_ERROR_STOP=1 --set=password="$SERVICE_PASSWORD" --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" <<'END'
create role portcullis_service login password :'password';
END
